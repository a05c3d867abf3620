#include <tessera/framework/io/format/safetensors_index.hpp>

#include <string_view>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

bool is_safetensors_index(const std::string& path) {
  return path.ends_with(".json") && !path.ends_with(".weights.json");
}

std::map<std::string, std::vector<std::string>> read_safetensors_index(const std::string& path) {
  const Json json = read_json_file(path);
  const JsonPath map_path = JsonPath(path).key("weight_map");
  const Json map = JsonObject(json, JsonPath(path)).take<Json>("weight_map");
  if (!map.is_object()) json_fail(map, map_path, "an object: a file's name for each tensor");
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [name, value] : map.items()) {
    const auto file = json_as<std::string>(value, map_path.key(name));
    // A file elsewhere would be one that the index's author chose and not its user.
    const bool is_plain = file.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
    if (!is_plain || file.empty() || file == "..") {
      json_fail(value, map_path.key(name), "the name of a file beside the index");
    }
    files[path_in(parent_of(path), file)].push_back(name);
  }
  return files;
}

void fail_missing_in_file(const std::string& file, const std::string& tensor,
                          const std::string& index) {
  throw FileError(file, str("the tensor ", in_quotes(tensor), ", as ", index, " says"),
                  "a file without it", "get both files again");
}

}  // namespace tessera::detail
