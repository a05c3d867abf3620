#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

/// Helpers of layers that draw random numbers; `where` names a layer in errors.
namespace tessera::detail {

/// Returns the seed of a layer's next draws as an operation's input: from the model's stream with
/// `seed` folded in, or from `seed` alone if the context has no stream.
DTensor draw_seed(const CallContext& context, const std::string& path, const Mesh& mesh,
                  std::optional<int64_t> seed);

/// Throws ConfigError unless 0 <= rate < 1.
void check_rate(const std::string& where, double rate);

/// The shape of random choices before they are broadcast to the input; -1 is the input's extent
/// (Keras' None), and an empty shape is the input's.
struct NoiseShape {
  Shape shape = {};
  /// Throws ConfigError unless it holds -1 and extents from 1 on.
  void check(const std::string& where) const;
  /// Throws ShapeError for an input that it does not broadcast to.
  void check_input(const std::string& where, const Shape& input) const;
  /// Draws dropout factors for x: 1 / (1 - rate) with probability 1 - rate, otherwise 0. They have
  /// x's layout if they have its shape, and are replicated otherwise.
  DTensor factors(const DTensor& x, double rate, const DTensor& seed) const;
};

/// A noise shape as Keras writes it: null for -1 and for an empty shape. Visited in place of the
/// shape.
struct NoiseShapeOption {
  Shape& shape;
};
Json option_json(const NoiseShapeOption& option);
void read_option(JsonObject& config, const std::string& key, NoiseShapeOption& option);

}  // namespace tessera::detail
