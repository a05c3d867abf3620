#include "apps/common/pretrained.hpp"

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>

namespace tessera::app {

using namespace detail;

void add_dtype_option(AppOptions& options) {
  options.add({"dtype", "Devices and layout",
               "dtype of weights and activations; mixed: of activations only",
               choice(options.common().dtype, {"float32", "float64", "bfloat16", "float16",
                                               "mixed_bfloat16", "mixed_float16"})});
}

Tokenizer pretrained_tokenizer(const Mesh& mesh, const std::string& path) {
  std::optional<Tokenizer> tokenizer;
  collectively(mesh, path, [&] { tokenizer = load_tokenizer(path); });
  tokenizer->set_truncation(std::nullopt);
  tokenizer->set_padding(std::nullopt);
  return *tokenizer;
}

std::optional<int64_t> rows_of_weight(const ModelHandle& model, const std::string& path) {
  for (const Variable& weight : model.weights()) {
    if (weight.path() == path) return weight.shape().front();
  }
  return std::nullopt;
}

void check_vocabulary(const ModelHandle& model, const Tokenizer& tokenizer,
                      const std::string& path) {
  const int64_t known = rows_of_weight(model, "words/embeddings").value_or(0);
  const int64_t ids = tokenizer.vocabulary_size();
  if (ids <= known) return;
  throw ConfigError(path, str("token ids are below ", known, ", the rows of the model's table"),
                    str("a tokenizer with ids up to ", ids - 1),
                    "take the tokenizer that belongs to the model");
}

}  // namespace tessera::app
