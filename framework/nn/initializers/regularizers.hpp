#pragma once

#include <array>

#include <tessera/framework/nn/initializers/regularizer.hpp>

namespace tessera {

/// l1 · Σ|x| (keras.regularizers.L1). A sharded x gives a partial sum, without communication.
/// Throws ConfigError for a factor that is negative or not finite.
///
///     Dense(10, {.kernel_regularizer = L1(1e-4)})
class L1 : public RegularizerHandle {
 public:
  explicit L1(double l1 = 0.01);
};

/// l2 · Σx² (keras.regularizers.L2). A sharded x gives a partial sum, without communication. Throws
/// ConfigError for a factor that is negative or not finite.
class L2 : public RegularizerHandle {
 public:
  explicit L2(double l2 = 0.01);
};

/// The options of L1L2.
struct L1L2Options {
  double l1 = 0;  ///< factor of Σ|x|, at least 0
  double l2 = 0;  ///< factor of Σx², at least 0
};

/// l1 · Σ|x| + l2 · Σx² (keras.regularizers.L1L2). A sharded x gives a partial sum, without
/// communication. Throws ConfigError for a factor that is negative or not finite.
class L1L2 : public RegularizerHandle {
 public:
  explicit L1L2(L1L2Options options = {});
};

/// The vectors of a matrix that OrthogonalRegularizer compares.
enum class OrthogonalMode : uint8_t { rows, columns };
/// Keras' names of the modes, in the order of the enumerators.
inline std::array<const char*, 2> names_of(OrthogonalMode) { return {"rows", "columns"}; }

/// The options of OrthogonalRegularizer.
struct OrthogonalRegularizerOptions {
  double factor = 0.01;                        ///< factor of the penalty, at least 0
  OrthogonalMode mode = OrthogonalMode::rows;  ///< whether rows or columns become orthogonal
};

/// factor / 2 · Σ|cosine of two different rows or columns| / number of pairs, for a matrix
/// (keras.regularizers.OrthogonalRegularizer). Communication: all-gathers sharded rows. Throws
/// ConfigError for a factor that is negative or not finite, ShapeError unless the rank is 2.
class OrthogonalRegularizer : public RegularizerHandle {
 public:
  explicit OrthogonalRegularizer(OrthogonalRegularizerOptions options = {});
};

}  // namespace tessera
