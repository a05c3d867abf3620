#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

/// Unreduced cross-entropies from logits, on which the losses are built. Each is stable for large
/// logits, and the gradient of the logits has their layout.
namespace tessera::ops {

/// -log softmax(logits)[label]: logits (…, c), labels (…) of an integer dtype -> (…)
/// (tf.nn.sparse_softmax_cross_entropy_with_logits). Fused, without communication, unless the class
/// axis is sharded. A sharded class axis is never all-gathered: the forward pass reduces a max, a
/// sum of exponentials and the label's logit, each of the labels' shape; the backward pass
/// communicates nothing. Throws ShapeError unless the shapes fit and there is at least one class,
/// ConfigError for a label outside [0, c).
DTensor sparse_softmax_cross_entropy(const DTensor& logits, const DTensor& labels);

/// -sum(labels · log softmax(logits)) over the last axis: both (…, c) -> (…)
/// (tf.nn.softmax_cross_entropy_with_logits). A sharded class axis costs all-reduces of shape (…).
DTensor softmax_cross_entropy(const DTensor& logits, const DTensor& labels);

/// max(x, 0) - x z + log1p(exp(-|x|)), elementwise, for logits x and labels z of the same shape
/// (tf.nn.sigmoid_cross_entropy_with_logits). No communication.
DTensor sigmoid_cross_entropy(const DTensor& logits, const DTensor& labels);

}  // namespace tessera::ops
