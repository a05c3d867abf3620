#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {

/// The random numbers of one step. A draw is a function of (seed, layer path, call count of that
/// layer, step), so it is the same on every mesh and a checkpoint saves only (seed, step).
class RandomStream {
 public:
  RandomStream(int64_t seed, int64_t step) : seed_(seed), step_(step) {}
  /// Returns the seed of the next draw of the layer at `path`. Ends the capture of a step, whose
  /// replays would repeat this seed.
  Seed next(const std::string& path);
  /// Like next(), with `fold` folded in, as a tensor that operations take, so that a replayed step
  /// draws fresh numbers.
  DTensor next_input(const std::string& path, const Mesh& mesh,
                     std::optional<int64_t> fold = std::nullopt);

 private:
  Seed stream(const std::string& path);

  int64_t seed_;
  int64_t step_;
  std::map<std::string, int64_t> calls_;
};

}  // namespace tessera::detail
