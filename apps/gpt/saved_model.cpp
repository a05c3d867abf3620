#include "apps/gpt/saved_model.hpp"

#include <fstream>
#include <optional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/io/format/versioned_directory.hpp>

namespace tessera::gpt {

using namespace detail;

namespace {

constexpr const char* config_file = "gpt.json";
constexpr const char* vocabulary_file = "vocabulary.txt";
constexpr const char* weights_file = "weights.safetensors";
constexpr const char* format_name = "tessera gpt";

Mesh mesh_of_model(const ModelHandle& model) { return model->weights()[0].layout().mesh(); }

/// Returns the folder of the files that `folder` leads to, after they were verified.
std::string version_in(const std::string& folder) {
  const bool is_version = exists(folder + "/" + version_manifest);
  const std::vector<int64_t> versions = list_versions(folder);
  if (!is_version && versions.empty()) return folder;
  const std::string version = is_version ? folder : version_path(folder, versions.back());
  const Json manifest = read_version(version).manifest;
  if (manifest.contains("format") && manifest["format"] == Json(format_name)) return version;
  throw FileError(version, "a model that gpt --save wrote", "another program's export",
                  "pass the folder that was given to gpt --save");
}

}  // namespace

void save_model_folder(const ModelHandle& model, const SavedModel& saved,
                       const std::string& folder) {
  const Mesh mesh = mesh_of_model(model);
  std::optional<NewVersion> version;
  const std::string weights = broadcast_text(mesh, folder, [&]() -> std::string {
    if (!is_first_rank(mesh)) return "";
    return version.emplace(folder).file(weights_file);
  });
  save_weights(model.model(), weights);
  collectively(mesh, folder, [&] {
    if (!version) return;
    std::string words;
    for (const std::string& word : saved.vocabulary) words += word + "\n";
    write_file_atomically(version->file(vocabulary_file), words);
    Json json = to_json(saved.size);
    json["dtype"] = saved.dtype;
    write_file_atomically(version->file(config_file), to_json_text(json, 1) + "\n");
    version->commit({{"format", format_name}, {"format_version", 1}});
  });
}

SavedModel read_model_folder(const std::string& folder) {
  SavedModel saved;
  saved.version = version_in(folder);
  const std::string config = saved.version + "/" + config_file;
  const std::string words = saved.version + "/" + vocabulary_file;
  Json json = read_json_file(config);
  if (json.is_object() && json.contains("dtype")) {
    saved.dtype = json_as<std::string>(json["dtype"], JsonPath(config).key("dtype"));
    dtype_policy(saved.dtype);
    json.erase("dtype");
  }
  saved.size = model_size_from_json(json, config);
  std::ifstream in(words, std::ios::binary);
  for (std::string word; std::getline(in, word);) saved.vocabulary.push_back(word);
  const auto count = std::ssize(saved.vocabulary);
  if (count < 2 || count > saved.size.vocabulary) {
    throw FileError(words, str("2 to ", saved.size.vocabulary, " words, one a line"),
                    str(count, " lines"), "take the whole folder that gpt --save wrote");
  }
  return saved;
}

void load_weights_of(const ModelHandle& model, const SavedModel& saved) {
  const Mesh mesh = mesh_of_model(model);
  // Another version may have been saved while the processes started.
  const std::string first = broadcast_text(mesh, saved.version, [&] { return saved.version; });
  collectively(mesh, saved.version, [&] {
    if (first == saved.version) return;
    throw FileError(saved.version, "all processes read the same version", first + " on rank 0",
                    "start again, or pass the version's folder");
  });
  load_weights(model.model(), saved.version + "/" + weights_file);
}

}  // namespace tessera::gpt
