#pragma once

#include <cstdint>

#include <ATen/ATen.h>

#include <tessera/tessera.hpp>

#include "tests/support/seed_scope.hpp"

namespace tessera::test {

/// A model of token ids, of which 0 is padding: the mask of its embedding goes through two blocks
/// of attention, the first of which keeps to documents, and of experts with losses of their own, to
/// the loss of each token.
inline Functional masked_experts() {
  constexpr int64_t steps = 7, features = 8;
  const SeedScope seed(7);
  const Input ids({steps}, {.dtype = "int64", .name = "ids"});
  const Input documents({steps}, {.dtype = "int64", .name = "documents"});
  const auto experts = [](const char* name, const char* dispatch) {
    return MixtureOfExperts({.num_experts = 4,
                             .hidden_dim = 10,
                             .aux_loss = 0.1,
                             .z_loss = 0.02,
                             .dispatch = dispatch,
                             .name = name});
  };
  SymbolicTensor x = Embedding(11, features, {.mask_zero = true, .name = "embedding"})(ids);
  x = PositionEmbedding(steps, {.add = true, .name = "positions"})(x);
  x = TransformerBlock({.num_heads = 2,
                        .hidden_dim = 12,
                        .use_causal_mask = true,
                        .dropout = 0.1,
                        .name = "block_1"})({x, documents});
  x = experts("experts_1", "einsum")(x);
  x = TransformerBlock(
      {.num_heads = 2, .feed_forward = experts("experts", "dropless"), .name = "block_2"})(x);
  x = LayerNormalization({.name = "norm"})(x);
  return Functional({ids, documents}, {Dense(5, {.name = "logits"})(x)}, {.name = "masked"});
}

inline CompileOptions masked_compile(const LayoutMap& layouts) {
  return {.optimizer = Adam(1e-2, {.global_clipnorm = 0.5}),
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .metrics = {"accuracy"},
          .weighted_metrics = {"accuracy"},
          .layouts = layouts};
}

/// Returns rows of 1 to 7 tokens of two documents, whose other positions are padding.
inline Examples masked_rows(int64_t rows) {
  constexpr int64_t steps = 7;
  const at::Tensor row = at::arange(rows, at::kLong).unsqueeze(1);
  const at::Tensor step = at::arange(steps, at::kLong);
  const at::Tensor ids = at::remainder(row * 5 + step * step * 3 + step * row, 10) + 1;
  const at::Tensor lengths = at::remainder(row * 3, steps) + 1;
  return {.x = {at::where(step.lt(lengths), ids, 0), at::floor_divide(step + row, 4)},
          .y = {at::remainder(ids + row, 5)}};
}

}  // namespace tessera::test
