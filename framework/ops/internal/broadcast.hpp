#pragma once

#include <string_view>
#include <utility>

#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::detail {

/// NumPy's broadcast of all shapes. Throws ShapeError naming the operation.
Shape broadcast_shape(std::string_view op, const Specs& in);

/// One factor for each axis of the broadcast result; an extent of 1 against a longer one has none.
Rule broadcast_rule(const Specs& in);
/// The rule of broadcast_rule() for an operation that needs one axis whole.
Rule whole_axis_rule(const Specs& in, int64_t axis);

/// The operands with a whole-number or bool one in the dtype of a floating one beside it, as Keras,
/// NumPy and PyTorch compute; others as they are.
std::pair<DTensor, DTensor> in_floating_dtype(const DTensor& a, const DTensor& b);

/// Throws ConfigError unless all inputs in [first, last) have one dtype.
void check_same_dtype(std::string_view op, const Specs& in, size_t first = 0);

/// Throws ConfigError unless the input is of a floating dtype.
void check_floating(std::string_view op, const Spec& in);

/// Throws ConfigError if the input holds truth values.
void check_number(std::string_view op, const Spec& in);

/// A gradient summed back to the shape of an operand that was broadcast.
DTensor sum_to(const DTensor& gradient, const Shape& shape);

}  // namespace tessera::detail
