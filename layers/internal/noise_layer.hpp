#pragma once

#include <optional>
#include <string>

#include <tessera/layers/internal/layer_of.hpp>

namespace tessera::detail {

/// Base of layers that change their input by random numbers, in training only. A derived class
/// defines the formula.
class NoiseLayer : public Layer {
 public:
  /// `rate`: amount of the noise; the layer returns its input if it is 0. `noise_shape`: shape of
  /// the random choices before they are broadcast to the input; -1 is the input's extent (Keras'
  /// None), and an empty shape is the input's.
  NoiseLayer(const LayerOptions& options, double rate, std::optional<int64_t> seed,
             const Shape& noise_shape = {});
  /// Returns the input's shape. Throws ShapeError for an input that the noise shape does not
  /// broadcast to.
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  /// Throws ConfigError naming `where` unless 0 <= rate < 1 and the noise shape holds -1 and
  /// extents from 1 on.
  void check(const std::string& where) const;
  /// Returns x with noise.
  virtual DTensor noisy(const DTensor& x, const DTensor& seed) const = 0;
  DTensor call(const Inputs& inputs, const CallContext& context) final;
  /// Draws dropout factors for x: 1 / (1 - rate) with probability 1 - rate, otherwise 0. They have
  /// x's layout if they have its shape, and are replicated otherwise.
  DTensor factors(const DTensor& x, const DTensor& seed) const;

 private:
  double rate_;
  std::optional<int64_t> seed_;
  Shape noise_shape_;
};

/// A noise shape as Keras writes it: null for -1 and for an empty shape. Visited in place of the
/// shape.
struct NoiseShapeOption {
  Shape& shape;
};
Json option_json(const NoiseShapeOption& option);
void read_option(JsonObject& config, const std::string& key, NoiseShapeOption& option);

/// The arguments of a layer with a rate.
template <class Options>
struct RateArguments : Options {
  double rate = 0;
};
template <class Options, class Visit>
void fields(RateArguments<Options>& a, const Visit& visit) {
  RequiredOption rate{a.rate};
  visit("rate", rate);
  visit("seed", a.seed);
  if constexpr (requires { a.noise_shape; }) {
    NoiseShapeOption noise_shape{a.noise_shape};
    visit("noise_shape", noise_shape);
  }
}

}  // namespace tessera::detail
