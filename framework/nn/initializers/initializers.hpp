#pragma once

#include <array>
#include <optional>
#include <string>

#include <tessera/framework/nn/initializers/initializer.hpp>

namespace tessera {

/// Seed of an initializer: a number s, which stands for the pair (s, 0) as in Keras on TensorFlow,
/// or the pair itself, as tf.random.stateless_uniform takes it.
class SeedOption {
 public:
  SeedOption(int64_t seed) : pair_{seed, 0} {}  // NOLINT: reads as data
  SeedOption(Seed pair) : pair_(pair) {}        // NOLINT
  Seed pair() const { return pair_; }

 private:
  Seed pair_;
};

/// Elements that meet in one output and one input of a weight: of a matrix (in, out); of a
/// convolution kernel (…, in, out), each times the window's size; of a vector, its length twice.
struct Fans {
  int64_t in = 1;
  int64_t out = 1;
};
Fans compute_fans(const Shape& shape);

/// The initializer of a Keras name, "glorot_uniform" or "GlorotUniform", with its defaults. Throws
/// ConfigError naming the nearest one.
InitializerHandle make_initializer(const std::string& name);

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

struct RandomUniformOptions {
  double minval = -0.05;
  double maxval = 0.05;
  std::optional<SeedOption> seed = std::nullopt;
};

/// Uniform in [minval, maxval) (keras.initializers.RandomUniform). Throws ConfigError unless
/// minval <= maxval.
class RandomUniform : public InitializerHandle {
 public:
  explicit RandomUniform(RandomUniformOptions options = {});
};

struct RandomNormalOptions {
  double mean = 0;
  double stddev = 0.05;
  std::optional<SeedOption> seed = std::nullopt;
};

/// Normal (keras.initializers.RandomNormal). Throws ConfigError for a negative stddev.
class RandomNormal : public InitializerHandle {
 public:
  explicit RandomNormal(RandomNormalOptions options = {});
};

/// Normal, values beyond two standard deviations drawn again (keras.initializers.TruncatedNormal).
class TruncatedNormal : public InitializerHandle {
 public:
  explicit TruncatedNormal(RandomNormalOptions options = {});
};

/// By which count VarianceScaling divides its scale.
enum class FanMode : uint8_t { fan_in, fan_out, fan_avg };
enum class Distribution : uint8_t { truncated_normal, untruncated_normal, uniform };

struct VarianceScalingOptions {
  double scale = 1;
  FanMode mode = FanMode::fan_in;
  Distribution distribution = Distribution::truncated_normal;
  std::optional<SeedOption> seed = std::nullopt;
};

/// Draws of variance v = scale / max(1, fan) (keras.initializers.VarianceScaling): uniform in
/// ±sqrt(3 v), normal of standard deviation sqrt(v), or truncated normal of sqrt(v) / 0.8796…,
/// which has standard deviation sqrt(v) once cut off. Throws ConfigError unless scale > 0.
class VarianceScaling : public InitializerHandle {
 public:
  explicit VarianceScaling(VarianceScalingOptions options = {});
};

struct SeedOptions {
  std::optional<SeedOption> seed = std::nullopt;
};

/// VarianceScaling(1, fan_avg, uniform): uniform in ±sqrt(6 / (fan_in + fan_out)), also Xavier's
/// (keras.initializers.GlorotUniform).
class GlorotUniform : public InitializerHandle {
 public:
  explicit GlorotUniform(SeedOptions options = {});
};

/// VarianceScaling(1, fan_avg, truncated_normal) (keras.initializers.GlorotNormal).
class GlorotNormal : public InitializerHandle {
 public:
  explicit GlorotNormal(SeedOptions options = {});
};

/// VarianceScaling(2, fan_in, uniform) (keras.initializers.HeUniform).
class HeUniform : public InitializerHandle {
 public:
  explicit HeUniform(SeedOptions options = {});
};

/// VarianceScaling(2, fan_in, truncated_normal) (keras.initializers.HeNormal).
class HeNormal : public InitializerHandle {
 public:
  explicit HeNormal(SeedOptions options = {});
};

/// VarianceScaling(1, fan_in, uniform) (keras.initializers.LecunUniform).
class LecunUniform : public InitializerHandle {
 public:
  explicit LecunUniform(SeedOptions options = {});
};

/// VarianceScaling(1, fan_in, truncated_normal) (keras.initializers.LecunNormal).
class LecunNormal : public InitializerHandle {
 public:
  explicit LecunNormal(SeedOptions options = {});
};

struct OrthogonalOptions {
  double gain = 1;
  std::optional<SeedOption> seed = std::nullopt;
};

/// gain times a matrix of orthonormal rows or columns, from the QR decomposition of a normal draw;
/// leading axes count as rows (keras.initializers.Orthogonal). Every process computes the whole
/// matrix. Drawing throws ShapeError below rank 2.
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
