#pragma once

#include <vector>

#include <ATen/ATen.h>

#include "apps/gpt/gpt_model.hpp"

namespace tessera::test {

/// Sizes that nothing divides: 6 heads with 2 key-value heads, 40 words, a vocabulary of 203.
inline gpt::ModelSize odd_gpt(bool pre_norm) {
  return {.blocks = 4,
          .heads = 6,
          .kv_heads = 2,
          .head_dim = 4,
          .width = 24,
          .hidden = 20,
          .length = 40,
          .vocabulary = 203,
          .dropout = 0,
          .pre_norm = pre_norm,
          .tied = pre_norm};
}

/// Rows of token ids with learnable order, one longer than the model's input; same as words_of() of
/// make_keras_gpt.py.
inline at::Tensor gpt_words(int64_t rows, const gpt::ModelSize& size) {
  const at::Tensor row = at::arange(rows, at::kLong).unsqueeze(1);
  const at::Tensor step = at::arange(size.length + 1, at::kLong);
  const int64_t kinds = size.vocabulary > 9973 ? 9973 : 97;
  const at::Tensor mixed =
      at::remainder(row * 31 + step * step * 7 + step * row, kinds) * 2 + at::remainder(step, 2);
  return at::remainder(mixed, size.vocabulary);
}

/// Returns some of the rows as inputs, with the next tokens as labels.
inline Examples gpt_batch(const at::Tensor& rows, int64_t first, int64_t count) {
  const at::Tensor some = rows.narrow(0, first, count);
  const int64_t length = rows.size(1) - 1;
  return {.x = {some.narrow(1, 0, length).contiguous()},
          .y = {some.narrow(1, 1, length).contiguous()}};
}

/// Adam and cross-entropy of logits, as in Keras' example.
inline CompileOptions gpt_training(const LayoutMap& layouts) {
  return {.optimizer = Adam(1e-3),
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .layouts = layouts};
}

/// The vocabulary "", "[UNK]", "w2", … for programs that print words.
inline std::vector<std::string> gpt_vocabulary(const gpt::ModelSize& size) {
  std::vector<std::string> vocabulary = {"", "[UNK]"};
  for (int64_t w = 2; w < size.vocabulary; ++w) vocabulary.push_back("w" + std::to_string(w));
  return vocabulary;
}

}  // namespace tessera::test
