#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/nn/internal/lora_layer.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

/// Visits nothing: a layer without arguments has the options of every layer only.
template <class Visit>
void fields(LayerOptions&, const Visit&) {}

}  // namespace tessera

/// The frame of a layer class: name, configuration, registration and replay, derived from one
/// struct of arguments.
///
///     struct ScaleArguments : ScaleOptions {
///       double factor = 1;
///     };
///     template <class Visit>
///     void fields(ScaleArguments& a, const Visit& visit) {
///       RequiredOption factor{a.factor};
///       visit("factor", factor);
///     }
///     class ScaleLayer final : public LayerOf<ScaleLayer, ScaleArguments> {
///      public:
///       static constexpr const char* keras_name = "Scale";
///       using LayerOf::LayerOf;
///
///      protected:
///       DTensor call(const Inputs& inputs, const CallContext&) override {
///         return inputs[0] * arguments_.factor;
///       }
///     };
///     const RegisteredLayerOf<ScaleLayer> registered_scale;
namespace tessera::detail {

/// An argument that a configuration must have, such as units. Visited in place of the argument.
template <class T>
struct RequiredOption {
  T& value;
};
template <class T>
RequiredOption(T&) -> RequiredOption<T>;
template <class T>
Json option_json(const RequiredOption<T>& option) {
  return option_json(option.value);
}
/// An empty list is written as one, not as None.
template <class T>
Json option_json(const RequiredOption<std::vector<T>>& option) {
  return option.value;
}
template <class T>
void read_option(JsonObject& config, const std::string& key, RequiredOption<T>& option) {
  option.value = config.take<T>(key);
}

/// An extent that a configuration must have: an integer, also written as 3.0. Visited in place of
/// the extent.
struct ExtentOption {
  int64_t& extent;
};
inline Json option_json(const ExtentOption& option) { return option.extent; }
inline void read_option(JsonObject& config, const std::string& key, ExtentOption& option) {
  option.extent = take_extent(config, key);
}

/// Base of a layer class `Self` with the static member keras_name. `Arguments` holds the layer's
/// options and its other arguments, and has fields(). `Base` is Layer or a class derived from it.
template <class Self, class LayerArguments, class Base = Layer>
class LayerOf : public Base {
 public:
  using Arguments = LayerArguments;

  /// `more`: what Base's constructor takes after the options that every layer has.
  template <class... More>
  explicit LayerOf(const Arguments& arguments, More&&... more)
      : Base(common_options(arguments), std::forward<More>(more)...), arguments_(arguments) {}

  std::string class_name() const override { return Self::keras_name; }
  Json config() const override { return layer_config(*this, arguments_); }
  bool can_be_replayed() const override { return true; }

 protected:
  /// Returns class and path, for errors: "Dense block/hidden".
  std::string where() const { return str(Self::keras_name, ' ', this->path()); }

  Arguments arguments_;
};

/// An adapter as a configuration has it; rank 0: none.
struct ConfiguredAdapter {
  int64_t rank = 0;
  double alpha = 0;
};
/// Reads Keras' lora_rank and lora_alpha.
inline ConfiguredAdapter take_adapter(JsonObject& config) {
  const auto alpha = config.take_optional<double>("lora_alpha");
  if (config.take_or<Json>("lora_rank", Json()).is_null()) return {};
  const int64_t rank = take_extent(config, "lora_rank");
  return {rank, alpha.value_or(static_cast<double>(rank))};
}

/// Registers a class derived from LayerOf, which is constructed from its arguments; one per class,
/// in its source. `null_keys`: options of Keras that must be absent or null.
template <class Self>
struct RegisteredLayerOf {
  explicit RegisteredLayerOf(std::initializer_list<const char*> null_keys = {}) {
    const std::vector<const char*> keys = null_keys;
    register_library_layer(Self::keras_name, [keys](JsonObject& config) {
      const auto arguments = layer_options_from<typename Self::Arguments>(config);
      for (const char* key : keys) take_nulls(config, {key});
      const auto layer = std::make_shared<Self>(arguments);
      if constexpr (std::is_base_of_v<LoraLayer, Self>) {
        const ConfiguredAdapter adapter = take_adapter(config);
        layer->set_adapter_when_built(adapter.rank, adapter.alpha);
      }
      return LayerHandle(layer);
    });
  }
};

}  // namespace tessera::detail
