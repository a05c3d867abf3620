#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// How rotary() lengthens its wavelengths for sequences longer than those of the training.
enum class RotaryScaling : uint8_t { none, linear, llama3, yarn };
/// Returns the names in the order of the enumerators, which are Hugging Face's `rope_type`.
inline std::array<const char*, 4> names_of(RotaryScaling) {
  return {"default", "linear", "llama3", "yarn"};
}

namespace ops {

/// The options of rotary().
struct RotaryOptions {
  double max_wavelength = 10000;  ///< base θ of the wavelengths (rope_theta)
  /// Whether features 2i and 2i + 1 are a pair (GPT-J, Llama's own files); otherwise features i and
  /// i + rotated / 2 are (KerasHub, Hugging Face).
  bool interleaved = false;
  /// How many features are rotated, from the first on; the others pass (default: all).
  std::optional<int64_t> rotated = std::nullopt;
  RotaryScaling scaling = RotaryScaling::none;  ///< how the wavelengths are scaled
  double scaling_factor = 1;                    ///< by how much, at least 1
  int64_t original_length = 0;  ///< sequence length of the training, for llama3 and yarn
  double low_freq_factor = 1;   ///< llama3: fewer turns in original_length are scaled fully
  double high_freq_factor = 4;  ///< llama3: more turns in original_length are not scaled
  double beta_fast = 32;        ///< yarn: more turns in original_length are not scaled
  double beta_slow = 1;         ///< yarn: fewer turns in original_length are scaled fully
  /// Factor of rotated features (default: 1; for yarn 0.1 · log(scaling_factor) + 1).
  std::optional<double> magnitude = std::nullopt;
  int64_t axis = -3;  ///< the axis of steps; the last one holds the features
};

/// Rotates pairs of features by angles that grow with the position, so that products of queries and
/// keys depend on their distance only (RoFormer, arXiv 2104.09864; keras_hub.layers.
/// RotaryEmbedding). With p the position of a step and n features rotated, pair i turns by p ·
/// max_wavelength^(-2i / n): (a, b) -> (a cos - b sin, b cos + a sin).
///
/// Scalings: linear divides each frequency by scaling_factor (arXiv 2306.15595); llama3 does so for
/// pairs of less than low_freq_factor turns in original_length, and gradually less up to
/// high_freq_factor turns; yarn blends by the pair's index between beta_fast and beta_slow turns
/// (arXiv 2309.00071). Formulas and defaults are those of Hugging Face's `rope_scaling`.
///
/// x: any shape with axes of steps and features, by default (batch…, T, heads, dim). `positions`
/// are integers, broadcast to the axes of x up to that of the steps: (T) or (batch…, T); undefined:
/// 0, 1, 2, … Angles are computed in float64, products in at least float32.
///
/// All axes but the features may be sharded without communication: a block of a sharded sequence
/// rotates by its global positions. Partial sums pass. Throws ShapeError for shapes that do not
/// fit, ConfigError for an invalid option.
DTensor rotary(const DTensor& x, const DTensor& positions = {}, const RotaryOptions& options = {});

}  // namespace ops
}  // namespace tessera
