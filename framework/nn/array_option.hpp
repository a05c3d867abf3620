#pragma once

#include <initializer_list>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// A number or an array of them, as Keras takes scales and means: 0.5, {0.5, 0.25}, a tensor.
class ArrayOption {
 public:
  /// None.
  ArrayOption() = default;
  ArrayOption(double value);                          // NOLINT: reads as data
  ArrayOption(std::initializer_list<double> values);  // NOLINT
  explicit ArrayOption(const at::Tensor& values);

  bool defined() const { return values_.defined(); }
  Shape shape() const { return values_.sizes().vec(); }
  /// The numbers on the host, float64.
  const at::Tensor& tensor() const { return values_; }
  /// A number, nested lists, or null for none.
  Json json() const;

 private:
  at::Tensor values_;
};

namespace detail {

/// An option from a number or nested lists of equal lengths; null is none. Throws ConfigError
/// naming the place.
void json_get(const Json& json, const JsonPath& path, ArrayOption& out);

}  // namespace detail

}  // namespace tessera
