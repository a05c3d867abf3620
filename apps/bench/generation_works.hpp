#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/op_works.hpp"

namespace tessera::bench {

/// A Llama of these sizes that continues a text greedily, and the text.
struct GenerationWork {
  std::string name;   ///< name for `bench compare-work`
  std::string title;  ///< title in the table
  int64_t blocks, width, heads, shared_heads, hidden, words;
  int64_t prompt, tokens;  ///< numbers of given and new tokens
};

/// Returns the works of `bench compare --work generate`, for CPUs: two blocks of width 64 behind
/// 300 tokens, where the time between operations counts, and the sizes of SmolLM2-135M.
const std::vector<GenerationWork>& generation_works();

/// Times texts of a work, each continued by all of its tokens.
TimedWork generation_work(const WorkFlags& flags);

}  // namespace tessera::bench
