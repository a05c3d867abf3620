#pragma once

#include <string>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Matrix product over the last two axes, leading axes broadcast: (…, m, k) · (…, k, n) -> (…, m,
/// n); `transpose_a` and `transpose_b` read an operand with its last two axes swapped. m and n keep
/// their sharding; a sharded k leaves a sum pending over its mesh dimensions. Throws ShapeError.
DTensor matmul(const DTensor& a, const DTensor& b, bool transpose_a = false,
               bool transpose_b = false);

/// x · kernel + bias, or the relu of it: (…, m, k), (k, n) and (n,) -> (…, m, n). One operation of
/// ATen where Variables meet an x of floating numbers whose k is whole; else, and where that would
/// communicate otherwise, the three: a sum is made of what a cut k leaves pending. Throws
/// ShapeError.
DTensor dense(const DTensor& x, const DTensor& kernel, const DTensor& bias, bool relu = false);

/// Einstein summation of one or two tensors, "bmk,kn->bmn"; each letter at most once an operand.
/// A letter kept in the output keeps its sharding, a summed one leaves a pending sum.
DTensor einsum(const std::string& equation, const std::vector<DTensor>& operands);

}  // namespace tessera::ops
