#include <tessera/framework/base/error.hpp>
#include <tessera/framework/text/internal/tokenizer_pipeline.hpp>

namespace tessera::detail {
namespace {

[[noreturn]] void fail_without_tokenizers(const std::string& where) {
  throw ConfigError(where, "a library built with tokenizers", "one built without them",
                    "install libonig-dev and libutf8proc-dev and build again");
}

}  // namespace

std::shared_ptr<const TokenizerPipeline> pipeline_from_json(std::string, const std::string& where) {
  fail_without_tokenizers(where);
}

std::shared_ptr<const TokenizerPipeline> load_sentence_piece(const std::string& path) {
  fail_without_tokenizers(path);
}

std::string tokenizer_json_of_folder(const std::string& folder) { fail_without_tokenizers(folder); }

}  // namespace tessera::detail
