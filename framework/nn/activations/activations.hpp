#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

class Layer;

namespace detail {

/// A type that holds a layer, such as LayerHandle.
template <class F>
concept HoldsLayer = requires(const F& handle) {
  { handle.layer() } -> std::convertible_to<std::shared_ptr<Layer>>;
};

}  // namespace detail

/// An activation: a Keras name, a function of one tensor, or a layer.
class ActivationHandle {
 public:
  using Function = std::function<DTensor(const DTensor&)>;
  /// Linear: returns its input.
  ActivationHandle() = default;
  ActivationHandle(const char* name)
      : ActivationHandle(std::string(name)) {}  // NOLINT: reads as data
  /// Looks up the activation with this Keras name, with default arguments. Two names are
  /// Tessera's: "tessera>hard_sigmoid_2", the hard_sigmoid of Keras 1 and 2, min(max(0.2 x + 0.5,
  /// 0), 1), and "tessera>approximate_gelu", gelu by tanh (keras.activations.gelu(x,
  /// approximate=True)).
  /// Throws ConfigError naming the nearest one, and for "threshold", whose arguments have no
  /// defaults.
  ActivationHandle(const std::string& name);  // NOLINT
  /// Wraps a user-defined function; its name is "custom".
  template <class F>
  requires(std::is_invocable_r_v<DTensor, F, const DTensor&> && !detail::HoldsLayer<F>)
      ActivationHandle(F function)
      : name_("custom"), own_(true), function_(std::move(function)) {}  // NOLINT
  /// Wraps a function pointer; selects the right overload of an overloaded name such as ops::relu.
  ActivationHandle(DTensor (*function)(const DTensor&))
      : name_("custom"), own_(true), function_(function) {}  // NOLINT
  /// Wraps a layer, such as PReLU(), which becomes a sublayer of the layer that it is passed to.
  template <detail::HoldsLayer F>
  ActivationHandle(const F& handle) : name_("layer"), layer_(handle.layer()) {}  // NOLINT
  DTensor operator()(const DTensor& x) const;
  const std::string& name() const { return name_; }
  /// The layer; null for a function.
  const std::shared_ptr<Layer>& layer() const { return layer_; }
  /// Returns the output shape for an input shape, in which -1 is unknown; "glu" halves the last
  /// axis.
  Shape output_shape(const Shape& input) const;

 private:
  std::string name_ = "linear";
  bool own_ = false;  ///< whether the function is user-defined
  /// Whether it has warned, for functions whose results sum to 1 over the last axis; copies share
  /// it.
  std::shared_ptr<std::once_flag> warned_;
  Function function_ = nullptr;
  std::shared_ptr<Layer> layer_;
};

namespace detail {

/// The name of Keras 1's and 2's hard_sigmoid, which is another function in Keras 3.
inline constexpr const char* keras_2_hard_sigmoid = "tessera>hard_sigmoid_2";
/// The name of gelu by tanh, which Keras has by an argument only.
inline constexpr const char* approximate_gelu = "tessera>approximate_gelu";
/// A name of Tessera's, and what Keras is to register for it.
struct OwnActivation {
  const char* name;
  const char* function;
};
inline constexpr std::array<OwnActivation, 2> own_activations = {
    {{keras_2_hard_sigmoid,
      "hard_sigmoid of Keras 2, lambda x: keras.ops.clip(0.2 * x + 0.5, 0, 1)"},
     {approximate_gelu, "gelu by tanh, lambda x: keras.ops.gelu(x, approximate=True)"}}};

/// Returns Keras' names that ActivationHandle takes, sorted.
std::vector<std::string> activation_names();

/// Warns, once for each flag, if a softmax over these axes of `x` has one element to choose from.
void warn_of_one_element(std::once_flag& warned, const std::string& name, const DTensor& x,
                         const std::vector<int64_t>& axes);

}  // namespace detail

}  // namespace tessera
