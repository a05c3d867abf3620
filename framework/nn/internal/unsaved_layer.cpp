#include <tessera/framework/nn/internal/unsaved_layer.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {

namespace {

/// Whether the layer makes its projections from its own options, which do not say that they are
/// quantized.
bool hides_quantized(const Layer& layer) {
  const std::string kind = layer.class_name();
  const auto& inner = layer.sublayers();
  return (kind == "MultiHeadAttention" || kind == "GroupQueryAttention" ||
          kind == "BlockAttention" || kind == "TransformerBlock") &&
         std::any_of(inner.begin(), inner.end(),
                     [](const auto& projection) { return projection->is_quantized(); });
}

}  // namespace

void check_saved(const Layer& layer) {
  if (hides_quantized(layer)) {
    throw ConfigError(layer.class_name() + " " + layer.path(),
                      "the projections of attention in a saved model are floating",
                      "quantized ones, which its configuration cannot describe, in Keras either",
                      "save the weights only, with save_weights()");
  }
  if (dynamic_cast<const UnsavedLayer*>(&layer)) {
    throw ConfigError(layer.class_name() + " " + layer.path(),
                      "the layers of a saved model can be made from their configurations",
                      "a layer of a C++ function",
                      "write the function as a class derived from Layer and register it with "
                      "register_layer(), or save the weights only");
  }
  for (const auto& inner : layer.sublayers()) check_saved(*inner);
}

}  // namespace tessera::detail
