#include <tessera/framework/nn/internal/unsaved_layer.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/nn/internal/reversed_call.hpp>
#include <tessera/framework/nn/layer_registry.hpp>

namespace tessera::detail {

namespace {

/// Whether the layer makes layers inside from its own options, one of which `has` what these do not
/// say.
bool hides(const Layer& layer, bool (*has)(const Layer&)) {
  const std::string kind = layer.class_name();
  const auto& inner = layer.sublayers();
  return (kind == "MultiHeadAttention" || kind == "GroupQueryAttention" ||
          kind == "BlockAttention" || kind == "TransformerBlock") &&
         std::any_of(inner.begin(), inner.end(),
                     [&](const auto& projection) { return has(*projection); });
}

bool is_quantized(const Layer& layer) { return layer.is_quantized(); }
bool has_lora(const Layer& layer) { return layer.has_lora(); }

}  // namespace

void check_saved(const Layer& layer) {
  if (hides(layer, is_quantized)) {
    throw ConfigError(layer.class_name() + " " + layer.path(),
                      "the projections of attention in a saved model are floating",
                      "quantized ones, which its configuration cannot describe, in Keras either",
                      "save the weights only, with save_weights()");
  }
  if (hides(layer, has_lora)) {
    throw ConfigError(layer.class_name() + " " + layer.path(),
                      "the layers inside attention in a saved model have no adapters",
                      "adapters, which its configuration cannot describe",
                      "merge_lora() first, or save the adapters, with save_adapters()");
  }
  if (dynamic_cast<const UnsavedLayer*>(&layer)) {
    throw ConfigError(layer.class_name() + " " + layer.path(),
                      "the layers of a saved model can be made from their configurations",
                      "a layer of a C++ function",
                      "write the function as a class derived from Layer and register it with "
                      "register_layer(), or save the weights only");
  }
  const auto& sublayers = layer.sublayers();
  for (const auto& inner : sublayers) {
    if (!is_reversed(*inner)) {
      check_saved(*inner);
      continue;
    }
    // Its calls are written among those of the layer that it reverses.
    const auto has_both = [&](const auto& other) {
      return other.get() == &layer_in_config(*inner);
    };
    if (is_functional(layer) && std::any_of(sublayers.begin(), sublayers.end(), has_both)) continue;
    throw ConfigError(inner->class_name() + " " + inner->path(),
                      "a saved tied head is in the same Functional model as its embedding",
                      str("one in ", layer.class_name(), " ", layer.path()),
                      "make a Functional model of both, or save the weights only");
  }
}

}  // namespace tessera::detail
