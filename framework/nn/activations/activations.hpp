#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

class Layer;

namespace detail {

/// A handle to a layer.
template <class F>
concept HoldsLayer = requires(const F& handle) {
  { handle.layer() } -> std::convertible_to<std::shared_ptr<Layer>>;
};

}  // namespace detail

/// An activation function: by Keras' name, any function of one tensor, or a layer.
class ActivationHandle {
 public:
  using Function = std::function<DTensor(const DTensor&)>;
  /// linear: the input itself.
  ActivationHandle() = default;
  ActivationHandle(const char* name)
      : ActivationHandle(std::string(name)) {}  // NOLINT: reads as data
  /// The activation of this name with Keras' default arguments. Throws ConfigError naming the
  /// nearest one, and for "threshold", which has no defaults.
  ActivationHandle(const std::string& name);  // NOLINT
  /// A function of the user's own; its name is "custom".
  template <class F>
  requires(std::is_invocable_r_v<DTensor, F, const DTensor&> && !detail::HoldsLayer<F>)
      ActivationHandle(F function)
      : name_("custom"), own_(true), function_(std::move(function)) {}  // NOLINT
  /// The same, chosen by its arguments among functions of one name: `ops::relu`.
  ActivationHandle(DTensor (*function)(const DTensor&))
      : name_("custom"), own_(true), function_(function) {}  // NOLINT
  /// A layer, such as PReLU(), which becomes a part of the layer that it is the activation of.
  template <detail::HoldsLayer F>
  ActivationHandle(const F& handle) : name_("layer"), layer_(handle.layer()) {}  // NOLINT
  DTensor operator()(const DTensor& x) const;
  const std::string& name() const { return name_; }
  /// The layer that it is; null for a function.
  const std::shared_ptr<Layer>& layer() const { return layer_; }
  /// Shape of the output for an input's, whose -1 are not known yet; "glu" halves the last axis.
  Shape output_shape(const Shape& input) const;

 private:
  std::string name_ = "linear";
  bool own_ = false;  ///< a function of the user's
  Function function_ = nullptr;
  std::shared_ptr<Layer> layer_;
};

namespace detail {

/// Names that ActivationHandle takes, sorted.
std::vector<std::string> activation_names();

}  // namespace detail

}  // namespace tessera
