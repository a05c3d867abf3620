#pragma once

#include <initializer_list>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// A scalar or array option, such as Keras' scales and means: 0.5, {0.5, 0.25} or a tensor.
class ArrayOption {
 public:
  /// The option is not set.
  ArrayOption() = default;
  ArrayOption(double value);                          // NOLINT: reads as data
  ArrayOption(std::initializer_list<double> values);  // NOLINT
  explicit ArrayOption(const at::Tensor& values);

  bool defined() const { return values_.defined(); }
  Shape shape() const { return values_.sizes().vec(); }
  /// The values as a float64 tensor on the CPU.
  const at::Tensor& tensor() const { return values_; }
  /// Returns a number, nested lists, or null if not set.
  Json json() const;

 private:
  at::Tensor values_;
};

namespace detail {

/// Reads an option from a number, rectangular nested lists, or null (not set). Throws ConfigError
/// naming the JSON path.
void json_get(const Json& json, const JsonPath& path, ArrayOption& out);

}  // namespace detail

}  // namespace tessera
