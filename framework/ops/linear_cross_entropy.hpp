#pragma once

#include <cstdint>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// The axis of a kernel that holds the classes: (d, c), as of a Dense layer, or (c, d), as of a
/// table of embeddings that is used as a kernel.
enum class ClassAxis : uint8_t { last, first };

/// -log softmax(x · kernel + bias)[label]: x (…, d), kernel of two axes, labels (…) of an integer
/// dtype, bias (c,) or undefined -> (…), float32 for float16 and bfloat16
/// (torch.nn.functional.linear_cross_entropy; "Cut Your Losses", arXiv 2411.09009). Equal to
/// sparse_softmax_cross_entropy() of the product, of which no block ever has all: forward and
/// backward, it computes the logits of some of its rows at a time and keeps two numbers for each
/// row. The backward pass computes the logits again.
///
/// Rows and classes may be sharded; d is gathered. Sharded classes cost what they cost in
/// sparse_softmax_cross_entropy(). Throws ShapeError unless the shapes fit and there is at least
/// one class, ConfigError for a label outside [0, c).
DTensor linear_softmax_cross_entropy(const DTensor& x, const DTensor& kernel, const DTensor& labels,
                                     const DTensor& bias = {}, ClassAxis classes = ClassAxis::last);

/// Returns x · kernel + bias, (…, c), of operands as above, computed when it is first read, unless
/// sparse_softmax_cross_entropy() reads large logits: it computes the loss from the operands by
/// linear_softmax_cross_entropy(). For layers that compute a model's logits. Until it is computed
/// it holds the operands: an update of the kernel would then copy it.
DTensor deferred_logits(const DTensor& x, const DTensor& kernel, const DTensor& bias = {},
                        ClassAxis classes = ClassAxis::last);

}  // namespace tessera::ops
