#pragma once

#include <tessera/framework/nn/initializers/regularizer.hpp>

namespace tessera {

/// l1 · Σ|x| (keras.regularizers.L1). Of a sharded x the sum stays pending. These classes throw
/// ConfigError for a factor that is negative or not finite.
class L1 : public RegularizerHandle {
 public:
  explicit L1(double l1 = 0.01);
};

/// l2 · Σx² (keras.regularizers.L2). Of a sharded x the sum stays pending.
class L2 : public RegularizerHandle {
 public:
  explicit L2(double l2 = 0.01);
};

struct L1L2Options {
  double l1 = 0;
  double l2 = 0;
};

/// l1 · Σ|x| + l2 · Σx² (keras.regularizers.L1L2). Of a sharded x the sums stay pending.
class L1L2 : public RegularizerHandle {
 public:
  explicit L1L2(L1L2Options options = {});
};

/// Which vectors of a matrix OrthogonalRegularizer compares.
enum class OrthogonalMode : uint8_t { rows, columns };

struct OrthogonalRegularizerOptions {
  double factor = 0.01;
  OrthogonalMode mode = OrthogonalMode::rows;
};

/// factor / 2 · Σ|cosines of different rows or columns| / pairs of them, of a matrix
/// (keras.regularizers.OrthogonalRegularizer). Rows cut over a mesh meet by gathering them.
/// Throws ShapeError for another rank.
class OrthogonalRegularizer : public RegularizerHandle {
 public:
  explicit OrthogonalRegularizer(OrthogonalRegularizerOptions options = {});
};

}  // namespace tessera
