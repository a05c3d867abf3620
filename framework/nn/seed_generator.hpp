#pragma once

#include <cstdint>
#include <optional>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// A source of seeds for random operations in a layer's call() or a model's train_step()
/// (keras.random.SeedGenerator):
///
///     SeedGenerator seeds;  // a member
///     const DTensor noise = ops::random_normal({32, 8}, seeds.next());
///
/// A seed of a training step is a function of the generator's seed, the number of its draws in the
/// step, and the step: the same on every mesh, in a resumed fit, and fresh in each replay of a
/// captured step. Elsewhere it is a function of the draws so far, and ends a capture.
class SeedGenerator {
 public:
  /// `seed`: default: set_random_seed()'s. Generators with one seed draw on in one sequence within
  /// a step.
  explicit SeedGenerator(std::optional<int64_t> seed = std::nullopt) : seed_(seed) {}
  /// Returns the next seed on the default mesh: int64 (2,), replicated.
  DTensor next();

 private:
  std::optional<int64_t> seed_;
  int64_t draws_ = 0;  ///< outside of training steps
};

}  // namespace tessera
