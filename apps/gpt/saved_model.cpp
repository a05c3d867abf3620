#include "apps/gpt/saved_model.hpp"

#include <filesystem>
#include <fstream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>

namespace tessera::gpt {

using namespace detail;

void save_model_folder(const ModelHandle& model, const SavedModel& saved, const std::string& folder,
                       bool first_process) {
  std::filesystem::create_directories(folder);
  save_weights(model.model(), folder + "/weights.safetensors");
  if (!first_process) return;
  std::string words;
  for (const std::string& word : saved.vocabulary) words += word + "\n";
  write_file_atomically(folder + "/vocabulary.txt", words);
  Json json = to_json(saved.size);
  json["dtype"] = saved.dtype;
  write_file_atomically(folder + "/gpt.json", to_json_text(json, 1) + "\n");
}

SavedModel read_model_folder(const std::string& folder) {
  const std::string config = folder + "/gpt.json", words = folder + "/vocabulary.txt";
  Json json = read_json_file(config);
  SavedModel saved;
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

void load_weights_of(const ModelHandle& model, const std::string& folder) {
  load_weights(model.model(), folder + "/weights.safetensors");
}

}  // namespace tessera::gpt
