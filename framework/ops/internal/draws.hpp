#pragma once

#include <string_view>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/random.hpp>
#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::detail {

/// Throws ConfigError unless the input is a seed: a pair of int64.
void check_seed(std::string_view op, const Spec& in);
/// Reads the pair of a seed's tensor.
Seed seed_of(const at::Tensor& pair);
/// Returns the rule of draws with the shape and layout of the first inputs, one for each of
/// `shaped`; a seed follows.
Rule draw_rule(const Specs& shaped);
/// Returns a tensor with the shape, dtype and layout of the numbers to draw from a seed, filled
/// with `value`.
DTensor draw_template(const Shape& shape, at::ScalarType dtype, const DTensor& seed,
                      double value = 0);

}  // namespace tessera::detail
