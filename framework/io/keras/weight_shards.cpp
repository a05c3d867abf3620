#include <tessera/framework/io/keras/weight_shards.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/replacing_file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::detail {
namespace {

namespace fs = std::filesystem;

constexpr const char* map_ending = ".weights.json";
constexpr const char* shard_ending = ".weights.h5";

/// Returns "/layers/dense/vars" for "/layers/dense/vars/0".
std::string group_of_dataset(const std::string& path) { return path.substr(0, path.rfind('/')); }

/// Splits an output into runs of datasets of at most `max_bytes` bytes each, with the groups that
/// they need; the first also gets the groups without datasets.
std::vector<KerasOutput> split_output(const KerasOutput& output, const std::string& path,
                                      double max_bytes) {
  std::vector<KerasOutput> shards(1);
  double bytes = 0;
  for (size_t i = 0; i < output.datasets.size(); ++i) {
    const Hdf5Dataset& dataset = output.datasets[i];
    const auto own = static_cast<double>(bytes_of(dataset, path));
    if (own > max_bytes) {
      throw FileError(path,
                      str("each tensor fits one file: ", own, " bytes of ", output.values[i].what),
                      str(max_bytes), "raise max_shard_size");
    }
    bytes += own;
    if (bytes > max_bytes) {
      shards.emplace_back();
      bytes = own;
    }
    shards.back().datasets.push_back(dataset);
    shards.back().values.push_back(output.values[i]);
  }
  for (KerasOutput& shard : shards) {
    std::set<std::string> needed{""};
    for (const Hdf5Dataset& dataset : shard.datasets) {
      for (size_t end = dataset.path.rfind('/'); end != 0; end = dataset.path.rfind('/', end - 1)) {
        needed.insert(dataset.path.substr(0, end));
      }
    }
    for (const Hdf5Group& group : output.groups) {
      if (needed.count(group.path) > 0 || &shard == &shards[0]) shard.groups.push_back(group);
    }
  }
  return shards;
}

std::string shard_name(const std::string& base, size_t number) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "_%05zu", number);
  return base + digits + shard_ending;
}

/// Returns the files that an existing weight map at `path` names.
std::vector<std::string> previous_files(const std::string& path) {
  try {
    return exists(path) ? files_in_weight_map(path) : std::vector<std::string>();
  } catch (const Error&) {
    return {};  // Not a weight map, so it names no files to remove.
  }
}

std::string map_text(const std::vector<KerasOutput>& shards, const std::vector<std::string>& names,
                     const std::string& path) {
  Json map = Json::object();
  double total = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    for (const Hdf5Dataset& dataset : shards[i].datasets) {
      total += static_cast<double>(bytes_of(dataset, path));
      Json& files = map[group_of_dataset(dataset.path)];
      if (files.is_null()) {
        files = names[i];
      } else if (files != Json(names[i])) {
        if (!files.is_array()) files = Json::array({files});
        if (files.back() != Json(names[i])) files.push_back(names[i]);
      }
    }
  }
  return to_json_text({{"metadata", {{"total_size", total}}}, {"weight_map", map}}, 4);
}

}  // namespace

std::vector<std::string> files_in_weight_map(const std::string& path) {
  const Json json = read_json_file(path);
  JsonObject root(json, JsonPath(path));
  const Json map = root.take<Json>("weight_map");
  if (!map.is_object()) json_fail(map, JsonPath(path).key("weight_map"), "groups and their files");
  std::set<std::string> names;
  const auto add = [&](const Json& name, const JsonPath& at) {
    const auto text = json_as<std::string>(name, at);
    const bool plain = text.find('/') == std::string::npos &&
                       text.find('\0') == std::string::npos && text.ends_with(shard_ending);
    if (!plain) json_fail(name, at, "the name of a file beside it, which ends in .weights.h5");
    names.insert(text);
  };
  for (const auto& [group, value] : map.items()) {
    const JsonPath at = JsonPath(path).key("weight_map").key(group);
    if (!value.is_array()) add(value, at);
    for (size_t i = 0; value.is_array() && i < value.size(); ++i) add(value[i], at.index(i));
  }
  return {names.begin(), names.end()};
}

void write_one_file(const Mesh& mesh, KerasOutput output, const std::string& path) {
  std::optional<ReplacingFile> file;
  const std::string temporary = broadcast_text(mesh, path, [&]() -> std::string {
    if (!is_first_rank(mesh)) return "";
    file.emplace(path);
    return file->temporary_path();
  });
  write_checked_output(mesh, output, path, temporary);
  collectively(mesh, path, [&] {
    if (file) file->commit();
  });
}

void write_shards(const Mesh& mesh, const KerasOutput& output, const std::string& path,
                  double max_bytes) {
  const std::string base = path.substr(0, path.size() - std::string(map_ending).size());
  std::vector<KerasOutput> shards;
  std::vector<std::string> previous;
  const std::string first = broadcast_text(mesh, path, [&] {
    shards = split_output(output, path, max_bytes);
    previous = previous_files(path);
    // Avoids the names in the previous map, whose files stay until the new map is in place.
    const auto taken = [&](size_t begin) {
      for (size_t i = 0; i < shards.size(); ++i) {
        const std::string name = fs::path(shard_name(base, begin + i)).filename();
        if (std::count(previous.begin(), previous.end(), name) > 0) return true;
      }
      return false;
    };
    size_t begin = 0;
    while (taken(begin)) ++begin;
    return std::to_string(begin);
  });
  std::vector<std::string> names;
  for (size_t i = 0; i < shards.size(); ++i) {
    names.push_back(fs::path(shard_name(base, std::stoul(first) + i)).filename());
  }
  const std::string map = map_text(shards, names, path);
  for (size_t i = 0; i < shards.size(); ++i) {
    write_one_file(mesh, std::move(shards[i]), shard_name(base, std::stoul(first) + i));
  }
  collectively(mesh, path, [&] {
    if (!is_first_rank(mesh)) return;
    write_file_atomically(path, map);
    for (const std::string& name : previous) {
      if (std::count(names.begin(), names.end(), name) > 0) continue;
      ::unlink(path_in(parent_of(path), name).c_str());
    }
  });
}

}  // namespace tessera::detail
