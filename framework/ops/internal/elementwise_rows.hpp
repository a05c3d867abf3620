#pragma once

#include <string_view>

#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::detail {

/// One elementwise function of a tensor; not differentiable if its gradient is null.
struct UnaryRow {
  std::string_view name;
  at::Tensor (*forward)(const at::Tensor& x);
  Saves saves;
  DTensor (*gradient)(const DTensor& x, const DTensor& y, const DTensor& dy);
  double lo = -2, hi = 2;  ///< range of the samples
  bool linear = false;
  enum class Types : uint8_t { floating, any, boolean, integer } types = Types::floating;
  bool to_bool = false;
};

/// One elementwise function of two broadcast tensors.
struct BinaryRow {
  std::string_view name;
  at::Tensor (*forward)(const at::Tensor& a, const at::Tensor& b);
  Saves saves;
  DTensor (*gradient_a)(const DTensor& a, const DTensor& b, const DTensor& y, const DTensor& dy);
  DTensor (*gradient_b)(const DTensor& a, const DTensor& b, const DTensor& y, const DTensor& dy);
  double lo = -2, hi = 2;
  bool linear = false;
  bool to_bool = false;
  at::ScalarType sample = at::kDouble;
  bool floating = false;
  bool integer = false;
};

/// Returns the position of the row of this name; an unknown name does not compile.
template <class Row, size_t N>
constexpr size_t find_row(const Row (&rows)[N], std::string_view name) {
  for (size_t i = 0; i < N; ++i) {
    if (rows[i].name == name) return i;
  }
  throw "no such row";
}

}  // namespace tessera::detail
