#pragma once

#include <string_view>
#include <utility>

#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::detail {

/// Returns NumPy's broadcast of all shapes. Throws ShapeError naming the operation.
Shape broadcast_shape(std::string_view op, const Specs& in);

/// Returns a rule with one factor per axis of the broadcast result; an extent of 1 against a longer
/// one has none.
Rule broadcast_rule(const Specs& in);
/// Returns broadcast_rule() for an operation that does not allow one axis to be sharded.
Rule unsharded_axis_rule(const Specs& in, int64_t axis);

/// Casts an integer or bool operand to the dtype of the other one if that is floating, as Keras,
/// NumPy and PyTorch do; returns other pairs unchanged.
std::pair<DTensor, DTensor> in_floating_dtype(const DTensor& a, const DTensor& b);

/// Throws ConfigError unless all inputs in [first, last) have one dtype.
void check_same_dtype(std::string_view op, const Specs& in, size_t first = 0);

/// Throws ConfigError unless the input has a floating dtype.
void check_floating(std::string_view op, const Spec& in);

/// Throws ConfigError unless the input has an integer dtype, which bool is not.
void check_integer(std::string_view op, const Spec& in);

/// Throws ConfigError for a bool input.
void check_not_bool(std::string_view op, const Spec& in);

/// Sums a gradient to the shape of an operand that was broadcast.
DTensor sum_to(const DTensor& gradient, const Shape& shape);

}  // namespace tessera::detail
