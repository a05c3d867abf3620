#pragma once

#include <string>

#include <tessera/framework/io/export.hpp>
#include <tessera/tessera.hpp>

namespace tessera::test {

/// Exports a small classifier of reviews, with TextVectorization before it, as a new version.
inline int64_t export_reviews(const std::string& folder, int64_t seed = 1) {
  const TextVectorization vectorize({.output_mode = "tf_idf",
                                     .vocabulary = {"good", "great", "bad", "awful"},
                                     .idf_weights = {1, 1.5, 1, 1.5},
                                     .name = "words"});
  const Sequential model(
      {Dense(2, {.kernel_initializer = GlorotUniform({.seed = seed}), .name = "logits"})});
  model.build({-1, 5});
  return export_model(model, folder,
                      {.text = std::dynamic_pointer_cast<TextLayer>(vectorize.layer()),
                       .sample = {"A good, great film!", "bad"},
                       .labels = {"negative", "positive"},
                       .activation = "softmax"});
}

}  // namespace tessera::test
