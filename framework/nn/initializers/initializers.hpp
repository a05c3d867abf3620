#pragma once

#include <array>
#include <optional>

#include <tessera/framework/nn/initializers/initializer.hpp>

namespace tessera {

/// Seed of an initializer: a number s, which stands for the pair (s, 0) as in Keras on TensorFlow,
/// or the pair itself, as tf.random.stateless_uniform takes it.
class SeedOption {
 public:
  /// The pair (0, 0).
  SeedOption() = default;
  SeedOption(int64_t seed) : pair_{seed, 0} {}  // NOLINT: reads as data
  SeedOption(Seed pair) : pair_(pair) {}        // NOLINT
  Seed pair() const { return pair_; }
  /// A number, or for a pair (s, t) with t other than 0 a list of two.
  Json json() const;

 private:
  Seed pair_ = {};
};
namespace detail {

/// A seed from a whole number or a list of two. Throws ConfigError naming the place.
void json_get(const Json& json, const JsonPath& path, SeedOption& out);

/// Elements that meet in one output and one input of a weight: of a matrix (in, out); of a
/// convolution kernel (…, in, out), each times the window's size; of a vector, its length twice.
struct Fans {
  int64_t in = 1;   ///< elements that meet in one output
  int64_t out = 1;  ///< elements that meet in one input
};
/// The fans of a weight of this shape, as Keras counts them.
Fans compute_fans(const Shape& shape);

}  // namespace detail

/// All 0 (keras.initializers.Zeros).
class Zeros : public InitializerHandle {
 public:
  Zeros();
};

/// All 1 (keras.initializers.Ones).
class Ones : public InitializerHandle {
 public:
  Ones();
};

/// All one value (keras.initializers.Constant).
class Constant : public InitializerHandle {
 public:
  explicit Constant(double value = 0);
};

/// The options of RandomUniform.
struct RandomUniformOptions {
  double minval = -0.05;                          ///< least value
  double maxval = 0.05;                           ///< bound of the values, which they stay below
  std::optional<SeedOption> seed = std::nullopt;  ///< seed of the draw; none: the weight's
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
  std::optional<SeedOption> seed = std::nullopt;  ///< seed of the draw; none: the weight's
};

/// Normal (keras.initializers.RandomNormal). Throws ConfigError for a negative stddev.
class RandomNormal : public InitializerHandle {
 public:
  explicit RandomNormal(RandomNormalOptions options = {});
};

/// Normal, values beyond two standard deviations drawn again (keras.initializers.TruncatedNormal).
/// Throws ConfigError for a negative stddev.
class TruncatedNormal : public InitializerHandle {
 public:
  explicit TruncatedNormal(RandomNormalOptions options = {});
};

/// The count by which VarianceScaling divides its scale.
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
  Distribution distribution = Distribution::truncated_normal;  ///< what is drawn from
  std::optional<SeedOption> seed = std::nullopt;  ///< seed of the draw; none: the weight's
};

/// Draws of variance v = scale / max(1, fan) (keras.initializers.VarianceScaling): uniform in
/// ±sqrt(3 v), normal of standard deviation sqrt(v), or truncated normal of sqrt(v) / 0.8796…,
/// which has standard deviation sqrt(v) once cut off. Throws ConfigError unless scale > 0.
class VarianceScaling : public InitializerHandle {
 public:
  explicit VarianceScaling(VarianceScalingOptions options = {});
};

/// Options of the initializers that have a seed only.
struct SeedOptions {
  std::optional<SeedOption> seed = std::nullopt;  ///< seed of the draw; none: the weight's
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
  double gain = 1;                                ///< what the matrix is multiplied by
  std::optional<SeedOption> seed = std::nullopt;  ///< seed of the draw; none: the weight's
};

/// gain times a matrix of orthonormal rows or columns, from the QR decomposition of a normal draw;
/// leading axes count as rows (keras.initializers.Orthogonal; Saxe et al., 2014). Every process
/// computes the whole matrix. Drawing throws ShapeError below rank 2.
class Orthogonal : public InitializerHandle {
 public:
  explicit Orthogonal(OrthogonalOptions options = {});
};

/// gain on the main diagonal of a matrix, else 0 (keras.initializers.Identity, which Keras calls
/// IdentityInitializer too). Drawing throws ShapeError unless the rank is 2.
class IdentityInitializer : public InitializerHandle {
 public:
  explicit IdentityInitializer(double gain = 1);
};

}  // namespace tessera
