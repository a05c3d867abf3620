#pragma once

#include <array>
#include <cstdint>

#include <tessera/framework/base/internal/philox.hpp>

namespace tessera::detail {

/// The float64 draws of one element of a random tensor, for distributions that take a varying
/// number of them. They depend on the stream and the element's global index only, as in TensorFlow,
/// which reserves 256 blocks of words for each element.
class ElementDraws {
 public:
  ElementDraws(const philox::Stream& stream, uint64_t element)
      : stream_(stream), element_(element) {}

  /// Returns the next uniform number in [0, 1).
  double uniform();
  /// Returns the next normal number.
  double normal();

 private:
  /// Returns the two uniform numbers of the next block of words.
  std::array<double, 2> next_pair();

  const philox::Stream& stream_;
  uint64_t element_;
  uint64_t blocks_ = 0;
  std::array<double, 2> uniforms_{}, normals_{};
  int uniforms_left_ = 0, normals_left_ = 0;
};

/// Draws from the gamma distribution of shape `alpha` and scale 1 (tf.random.stateless_gamma): by
/// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000). NaN unless alpha
/// is positive.
double gamma_draw(ElementDraws& draws, double alpha);

/// Draws the number of successes in `count` trials of a probability. Where count · min(p, 1 - p) is
/// at least 10, by the transformed rejection of Hörmann, "The generation of binomial random
/// variates" (1993), with the numbers of tf.random.stateless_binomial; otherwise by adding up
/// geometric waiting times. Probabilities beyond [0, 1] count as 0 and 1, and a negative count as
/// 0; NaN gives NaN.
double binomial_draw(ElementDraws& draws, double count, double probability);

}  // namespace tessera::detail
