#pragma once

#include <array>
#include <optional>

#include <tessera/framework/nn/initializers/initializer.hpp>

namespace tessera {

/// The seed of an initializer: an integer s, short for the pair (s, 0) as in Keras on TensorFlow,
/// or a pair, as tf.random.stateless_uniform takes it.
class SeedOption {
 public:
  /// The pair (0, 0).
  SeedOption() = default;
  SeedOption(int64_t seed) : pair_{seed, 0} {}  // NOLINT: reads as data
  SeedOption(Seed pair) : pair_(pair) {}        // NOLINT
  Seed pair() const { return pair_; }
  /// Returns s for a pair (s, 0), else a list of two integers.
  Json json() const;

 private:
  Seed pair_ = {};
};
namespace detail {

/// Reads a seed from an integer or a list of two. Throws ConfigError naming the JSON path.
void json_get(const Json& json, const JsonPath& path, SeedOption& out);

/// Fan-in and fan-out: (in, out) for a matrix; each times the window size for a convolution kernel
/// (…, in, out); (n, n) for a vector of n elements; (1, 1) for a scalar.
struct Fans {
  int64_t in = 1;   ///< weight elements that contribute to one output
  int64_t out = 1;  ///< weight elements that multiply one input
};
/// Returns the fans of a weight of this shape, as Keras counts them.
Fans compute_fans(const Shape& shape);

}  // namespace detail

/// All zeros (keras.initializers.Zeros).
class Zeros : public InitializerHandle {
 public:
  Zeros();
};

/// All ones (keras.initializers.Ones).
class Ones : public InitializerHandle {
 public:
  Ones();
};

/// A constant value (keras.initializers.Constant).
class Constant : public InitializerHandle {
 public:
  explicit Constant(double value = 0);
};

/// The options of RandomUniform.
struct RandomUniformOptions {
  double minval = -0.05;                          ///< lower bound, inclusive
  double maxval = 0.05;                           ///< upper bound, exclusive
  std::optional<SeedOption> seed = std::nullopt;  ///< seed (default: the weight's own)
};

/// Uniform in [minval, maxval) (keras.initializers.RandomUniform). Throws ConfigError unless
/// minval <= maxval.
class RandomUniform : public InitializerHandle {
 public:
  explicit RandomUniform(RandomUniformOptions options = {});
};

/// Options of RandomNormal and TruncatedNormal.
struct RandomNormalOptions {
  double mean = 0;                                ///< mean of the values
  double stddev = 0.05;                           ///< standard deviation, at least 0
  std::optional<SeedOption> seed = std::nullopt;  ///< seed (default: the weight's own)
};

/// Normal (keras.initializers.RandomNormal). Throws ConfigError for a negative stddev.
class RandomNormal : public InitializerHandle {
 public:
  explicit RandomNormal(RandomNormalOptions options = {});
};

/// Normal, with values beyond two standard deviations redrawn (keras.initializers.TruncatedNormal).
/// Throws ConfigError for a negative stddev.
class TruncatedNormal : public InitializerHandle {
 public:
  explicit TruncatedNormal(RandomNormalOptions options = {});
};

/// The fan by which VarianceScaling divides its scale.
enum class FanMode : uint8_t { fan_in, fan_out, fan_avg };
/// The distribution that VarianceScaling draws from.
enum class Distribution : uint8_t { truncated_normal, untruncated_normal, uniform };
/// Keras' names of the fan modes, in the order of the enumerators.
inline std::array<const char*, 3> names_of(FanMode) { return {"fan_in", "fan_out", "fan_avg"}; }
/// Keras' names of the distributions, in the order of the enumerators.
inline std::array<const char*, 3> names_of(Distribution) {
  return {"truncated_normal", "untruncated_normal", "uniform"};
}

/// The options of VarianceScaling.
struct VarianceScalingOptions {
  double scale = 1;                ///< variance times the fan; positive
  FanMode mode = FanMode::fan_in;  ///< which fan divides the scale: in, out or their mean
  Distribution distribution = Distribution::truncated_normal;  ///< distribution of the draw
  std::optional<SeedOption> seed = std::nullopt;               ///< seed (default: the weight's own)
};

/// Draws of variance v = scale / max(1, fan) (keras.initializers.VarianceScaling): uniform in
/// ±sqrt(3 v), normal of standard deviation sqrt(v), or truncated normal of sqrt(v) / 0.8796…,
/// which has standard deviation sqrt(v) after truncation. Throws ConfigError unless scale > 0.
class VarianceScaling : public InitializerHandle {
 public:
  explicit VarianceScaling(VarianceScalingOptions options = {});
};

/// The options of initializers that have a seed only.
struct SeedOptions {
  std::optional<SeedOption> seed = std::nullopt;  ///< seed (default: the weight's own)
};

/// VarianceScaling(1, fan_avg, uniform): uniform in ±sqrt(6 / (fan_in + fan_out))
/// (keras.initializers.GlorotUniform; Glorot and Bengio, 2010), also called Xavier's.
///
///     Dense(10, {.kernel_initializer = GlorotUniform({.seed = 1})})
class GlorotUniform : public InitializerHandle {
 public:
  explicit GlorotUniform(SeedOptions options = {});
};

/// VarianceScaling(1, fan_avg, truncated_normal), of standard deviation
/// sqrt(2 / (fan_in + fan_out)) (keras.initializers.GlorotNormal; Glorot and Bengio, 2010).
class GlorotNormal : public InitializerHandle {
 public:
  explicit GlorotNormal(SeedOptions options = {});
};

/// VarianceScaling(2, fan_in, uniform): uniform in ±sqrt(6 / fan_in) (keras.initializers.HeUniform;
/// He et al., 2015).
class HeUniform : public InitializerHandle {
 public:
  explicit HeUniform(SeedOptions options = {});
};

/// VarianceScaling(2, fan_in, truncated_normal), of standard deviation sqrt(2 / fan_in)
/// (keras.initializers.HeNormal; He et al., 2015).
class HeNormal : public InitializerHandle {
 public:
  explicit HeNormal(SeedOptions options = {});
};

/// VarianceScaling(1, fan_in, uniform): uniform in ±sqrt(3 / fan_in)
/// (keras.initializers.LecunUniform; LeCun et al., 1998).
class LecunUniform : public InitializerHandle {
 public:
  explicit LecunUniform(SeedOptions options = {});
};

/// VarianceScaling(1, fan_in, truncated_normal), of standard deviation sqrt(1 / fan_in)
/// (keras.initializers.LecunNormal; LeCun et al., 1998).
class LecunNormal : public InitializerHandle {
 public:
  explicit LecunNormal(SeedOptions options = {});
};

/// The options of Orthogonal.
struct OrthogonalOptions {
  double gain = 1;                                ///< factor of the matrix
  std::optional<SeedOption> seed = std::nullopt;  ///< seed (default: the weight's own)
};

/// gain times a matrix with orthonormal rows or columns, from the QR decomposition of a normal draw
/// (keras.initializers.Orthogonal; Saxe et al., 2014). All axes but the last count as rows. Every
/// process computes the full matrix. Drawing throws ShapeError for a rank below 2.
class Orthogonal : public InitializerHandle {
 public:
  explicit Orthogonal(OrthogonalOptions options = {});
};

/// gain times the identity matrix (keras.initializers.Identity, alias IdentityInitializer). Drawing
/// throws ShapeError unless the rank is 2.
class IdentityInitializer : public InitializerHandle {
 public:
  explicit IdentityInitializer(double gain = 1);
};

}  // namespace tessera
