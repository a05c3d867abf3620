#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

namespace tessera::bench {

/// A model whose training steps on one device are compared, and its data.
struct StepWork {
  std::string name;   ///< name for --work
  std::string kind;   ///< name of the peers' model
  std::string title;  ///< title in the table
  int64_t batch_size;
  std::string dtype;  ///< dtype policy of the model
  Json sizes;         ///< sizes for the peers' programs
  std::function<TensorDataset()> data;
  std::function<ModelHandle(const LayoutMap&)> model;
};

/// Returns the works for a GPU ("cuda"), or small ones for "cpu", to try the programs.
std::vector<StepWork> step_works(const std::string& device);

/// Returns the works of `bench compare --work transformer`, for CPUs: an encoder block of lengths
/// 128 and 512, and Keras' miniature GPT with 2,000 words; without dropout.
std::vector<StepWork> transformer_works();

/// Returns the works of `bench compare --work vision` and of `--work recurrent`, for CPUs:
/// ResNet-50 and MobileNetV2 on images of 96 x 96, LSTM and GRU of 256 units on 100 steps. Each for
/// training, and with batches of other sizes for predictions only.
std::vector<StepWork> vision_works();
std::vector<StepWork> recurrent_works();

/// Returns the works of `bench compare --work embedding`, for CPUs: a table of a million rows of
/// which a step looks up 8,192, with an Adam that updates these rows, and with one that updates
/// all.
std::vector<StepWork> embedding_works();

/// Returns the works of `bench compare --work inference`, for CPUs: predictions of a small BERT.
std::vector<StepWork> inference_works();

/// Returns the works of `bench compare --work remat`, for CPUs: a GPT whose blocks are
/// rematerialized, without anything saved in them, and the same with everything saved.
std::vector<StepWork> remat_works();

/// Returns the works of `bench compare --work logits`, for CPUs: the miniature GPT with 20,000
/// words, whose loss computes the logits of some rows at a time, and the same with whole logits.
std::vector<StepWork> logits_works();

/// Returns the works of `bench compare --work pipeline`, for CPUs: a GPT in four stages, whose
/// batches pass in four microbatches, and the same on one device, which accumulates the gradients
/// of four batches of a quarter of the rows.
std::vector<StepWork> pipeline_works();

/// Returns the work of that name from any list. Throws ConfigError for an unknown name.
StepWork find_step_work(const std::string& name, const std::string& device);

}  // namespace tessera::bench
