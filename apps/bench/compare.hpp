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

/// A run of `bench compare`: what the pieces of work have in common.
struct CompareRun {
  Peers peers;
  int64_t rounds;
  int64_t steps;
  bool busy;                ///< whether it is measured beside programs that never rest
  std::string folder;       ///< for files, empty at first
  std::string device = "";  ///< of compare_steps() and compare_uploads()
  Comparison comparison = {};

  /// Adds a peer to those that take turns, if it is there.
  void invite(std::vector<Contender>& contenders, const std::string& key, const std::string& peer,
              const std::string& how, const std::string& program,
              const std::vector<std::string>& arguments) const;
  /// Adds the row of a contender that was there.
  void add_other(const Figures& figures, const std::string& own, const std::string& other,
                 std::optional<double> most = std::nullopt);
  /// Writes data for the peers, raw numbers: NAME.x float32 and NAME.y int64. Returns their path
  /// without the endings. Throws FileError.
  std::string share(const std::string& name, const Examples& examples) const;
};

/// Each adds its rows to the comparison.
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
/// Training steps on one device, each from a batch of the host to its loss.
void compare_steps(CompareRun& run, const StepWork& work);
/// Causal attention by itself, beside PyTorch's.
void compare_attention(CompareRun& run);
/// transformer_works() on one device, beside PyTorch, JAX and Keras on JAX, and on 8 virtual ones.
void compare_transformer(CompareRun& run);
/// The same in fit, beside steps whose data lie on the device.
void compare_uploads(CompareRun& run, const StepWork& work);
/// Dropout of one device, beside a copy.
void compare_dropout(CompareRun& run);

}  // namespace tessera::bench
