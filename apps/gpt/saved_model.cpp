#include "apps/gpt/saved_model.hpp"

#include <filesystem>
#include <fstream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>

namespace tessera::gpt {

using namespace detail;

void save_model_folder(const ModelHandle& model, const SavedModel& saved,
                       const std::string& folder, bool first_process) {
  std::filesystem::create_directories(folder);
  save_weights(model.model(), folder + "/weights.safetensors");
  if (!first_process) return;
  std::string words;
  for (const std::string& word : saved.vocabulary) words += word + "\n";
  write_file_atomically(folder + "/vocabulary.txt", words);
  write_file_atomically(folder + "/gpt.json", to_json_text(to_json(saved.size), 1) + "\n");
}

SavedModel read_model_folder(const std::string& folder) {
  const std::string config = folder + "/gpt.json", words = folder + "/vocabulary.txt";
  SavedModel saved{model_size_from_json(read_json_file(config), config), {}};
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
