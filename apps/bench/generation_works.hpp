#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/op_works.hpp"

namespace tessera::bench {

/// A Llama of these sizes, the text that it continues greedily, and the batch that it trains on.
struct GenerationWork {
  std::string name;   ///< generate_NAME and train_NAME are works of `bench compare-work`
  std::string title;  ///< the model's part of a title in the table
  int64_t blocks, width, heads, shared_heads, hidden, words;
  int64_t prompt, tokens;  ///< numbers of given and new tokens
  int64_t rows, length;    ///< sizes of the batch
};

/// Returns the works of `bench compare --work generate`, for CPUs: two blocks of width 64, where
/// the time between operations counts, and the sizes of SmolLM2-135M.
const std::vector<GenerationWork>& generation_works();

/// Times texts of a work, each continued by all of its tokens.
TimedWork generation_work(const WorkFlags& flags);
/// Times training steps of a work with Adam, from a batch on the host to its loss.
TimedWork language_training_work(const WorkFlags& flags);

}  // namespace tessera::bench
