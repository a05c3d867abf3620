#include "apps/finetune/save.hpp"

#include <array>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::finetune {

using namespace detail;

namespace {

constexpr std::array<const char*, 10> text_files = {
    "tokenizer.json",      "tokenizer_config.json",
    "tokenizer.model",     "special_tokens_map.json",
    "vocab.json",          "merges.txt",
    "vocab.txt",           "added_tokens.json",
    "chat_template.jinja", "generation_config.json"};

}  // namespace

void copy_text_files(const std::string& from, const std::string& to) {
  for (const char* name : text_files) {
    const std::string path = path_in(from, name);
    if (exists(path)) write_file_atomically(path_in(to, name), read_file(path));
  }
}

void save_whole_model(const ModelHandle& model, const std::string& base,
                      const std::string& folder) {
  save_pretrained(model, folder, {.like = base});
  const Mesh mesh = model.weights().front().layout().mesh();
  collectively(mesh, folder, [&] {
    if (is_first_rank(mesh)) copy_text_files(base, folder);
  });
}

}  // namespace tessera::finetune
