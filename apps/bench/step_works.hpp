#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

namespace tessera::bench {

/// A model whose training steps on one device are compared, and its data.
struct StepWork {
  std::string name;   ///< as --work has it
  std::string kind;   ///< which of the peers' models it is
  std::string title;  ///< in the table
  int64_t batch_size;
  std::string dtype;  ///< policy of the model
  Json sizes;         ///< what the peers' programs have to know
  std::function<TensorDataset()> data;
  std::function<ModelHandle(const LayoutMap&)> model;
};

/// All of them, for a GPU ("cuda"); for "cpu" small ones, by which the programs are tried.
std::vector<StepWork> step_works(const std::string& device);

/// What `bench compare --work transformer` times on CPUs: a block of an encoder, 128 and 512 words
/// long, and Keras' miniature GPT on 2,000 words; without dropout.
std::vector<StepWork> transformer_works();

/// The one of a name, of either. Throws ConfigError for an unknown one.
StepWork find_step_work(const std::string& name, const std::string& device);

}  // namespace tessera::bench
