#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// An activation function, by Keras' name or any function of one tensor.
class ActivationHandle {
 public:
  using Function = std::function<DTensor(const DTensor&)>;
  /// linear: the input itself.
  ActivationHandle() = default;
  ActivationHandle(const char* name)
      : ActivationHandle(std::string(name)) {}  // NOLINT: reads as data
  /// The activation of this name with Keras' default arguments. Throws ConfigError naming the
  /// nearest one, and for "threshold", which has no defaults.
  ActivationHandle(const std::string& name);                               // NOLINT
  /// A function of the user's own; its name is "custom".
  template <class F>
    requires std::is_invocable_r_v<DTensor, F, const DTensor&>
  ActivationHandle(F function) 
      : name_("custom"), own_(true), function_(std::move(function)) {}  // NOLINT
  DTensor operator()(const DTensor& x) const;
  const std::string& name() const { return name_; }
  /// Shape of the output for an input's, whose -1 are not known yet; "glu" halves the last axis.
  Shape output_shape(const Shape& input) const;

 private:
  std::string name_ = "linear";
  bool own_ = false;  ///< a function of the user's
  Function function_ = nullptr;
};

namespace detail {

/// Names that ActivationHandle takes, sorted.
std::vector<std::string> activation_names();

}  // namespace detail

}  // namespace tessera
