#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/data/tensor_dataset.hpp>

#include "apps/bench/comparison.hpp"
#include "apps/bench/contender.hpp"
#include "apps/bench/step_works.hpp"

namespace tessera::bench {

/// A run of `bench compare`: the state that all works share.
struct CompareRun {
  Peers peers;
  int64_t rounds;
  int64_t steps;
  bool busy;                ///< whether busy loops run during the measurement
  std::string folder;       ///< folder for files, empty at first
  std::string device = "";  ///< device of compare_steps() and compare_uploads()
  Comparison comparison = {};

  /// Adds a peer to the contenders, if it was found.
  void add_peer(std::vector<Contender>& contenders, const std::string& key, const std::string& peer,
                const std::string& how, const std::string& program,
                const std::vector<std::string>& arguments) const;
  /// Adds a row that compares our figure with another one, if it exists.
  void add_other(const Figures& figures, const std::string& own, const std::string& other,
                 std::optional<double> limit = std::nullopt);
  /// Writes data for the peers as raw numbers: NAME.x float32 and NAME.y int64. Returns their path
  /// without the extensions. Throws FileError.
  std::string share(const std::string& name, const Examples& examples) const;
};

// Each of these functions adds its rows to the comparison.
void compare_mlp(CompareRun& run);
void compare_imdb(CompareRun& run);
void compare_fit(CompareRun& run);
void compare_cnn(CompareRun& run);
void compare_text(CompareRun& run);
void compare_start_up(CompareRun& run);
void compare_checkpoint(CompareRun& run);
void compare_memory(CompareRun& run);
void compare_dispatch(CompareRun& run);
void compare_csv(CompareRun& run);
void compare_pictures(CompareRun& run);
/// Compares training steps on one device, each from a batch on the host to its loss.
void compare_steps(CompareRun& run, const StepWork& work);
/// Compares causal attention with PyTorch's.
void compare_attention(CompareRun& run);
/// Compares transformer_works() on one device with PyTorch, JAX and Keras on JAX, and with 8
/// virtual devices.
void compare_transformer(CompareRun& run);
/// Compares vision_works() and recurrent_works(): training with PyTorch, on one device and on 8
/// virtual ones, and predictions with PyTorch and ONNX Runtime.
void compare_vision(CompareRun& run);
void compare_recurrent(CompareRun& run);
/// Compares embedding_works() with PyTorch and Keras on JAX.
void compare_embedding(CompareRun& run);
/// Compares inference_works() with PyTorch and ONNX Runtime.
void compare_inference(CompareRun& run);
/// Compares generation_works() with transformers.
void compare_generate(CompareRun& run);
/// Compares time and memory of remat_works(): of steps that compute blocks again with steps that
/// save them.
void compare_remat(CompareRun& run);
/// Compares time and memory of logits_works(): of a loss that never has the whole logits with one
/// that reads them.
void compare_logits(CompareRun& run);
/// Compares steps with world_size_invariant on 8 virtual devices with the default ones and with
/// steps on blocks per device: of the MLP and the miniature GPT.
void compare_invariant(CompareRun& run);
/// Compares pipeline_works(): a step in four stages on virtual devices of one process with the
/// steps without stages that make one update.
void compare_pipeline(CompareRun& run);
/// Compares our HTTP server with uvicorn, starlette and ONNX Runtime under wrk's load.
void compare_serving(CompareRun& run);
/// Compares fit, which copies batches to the device, with steps on data that are already there.
void compare_uploads(CompareRun& run, const StepWork& work);
/// Compares dropout on one device with a copy.
void compare_dropout(CompareRun& run);

}  // namespace tessera::bench
