#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

/// What the layers that draw random numbers share; `where` is a layer as errors name it.
namespace tessera::detail {

/// The seed of a layer's next numbers, as operations take it: of the model's stream with `seed`
/// folded in, of `seed` alone where there is no stream.
DTensor draw_seed(const CallContext& context, const std::string& path, const Mesh& mesh,
                  std::optional<int64_t> seed);

/// Throws ConfigError unless 0 <= rate < 1.
void check_rate(const std::string& where, double rate);

/// The shape that random choices have before they broadcast to the input; -1 is the input's extent
/// (Keras' None), and no axes at all are the input's shape.
struct NoiseShape {
  Shape shape = {};
  /// Throws ConfigError unless it holds -1 and extents from 1 on.
  void check(const std::string& where) const;
  /// Throws ShapeError for an input that it does not broadcast to.
  void check_input(const std::string& where, const Shape& input) const;
  /// 1 / (1 - rate) with probability 1 - rate, else 0: factors for x, in its layout if they are as
  /// many.
  DTensor factors(const DTensor& x, double rate, const DTensor& seed) const;
};

/// A noise shape as Keras writes it, null for -1 and for no axes at all; visited in place of it.
struct NoiseShapeOption {
  Shape& shape;
};
Json option_json(const NoiseShapeOption& option);
void read_option(JsonObject& given, const std::string& key, NoiseShapeOption& option);

}  // namespace tessera::detail
