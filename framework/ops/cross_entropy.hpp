#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

/// Cross-entropies from logits, one number an example; losses reduce them. Each is stable for large
/// logits, and its gradient with respect to the logits has their layout.
namespace tessera::ops {

/// -log softmax(logits)[label]: logits (…, c), labels (…) of an integer dtype -> (…)
/// (tf.nn.sparse_softmax_cross_entropy_with_logits). Fused and without communication while the
/// class axis is not sharded; a sharded one is never gathered: a pending max, a pending sum of exp
/// and the picked logit, each of the labels' shape, and nothing in the backward pass. Throws
/// ShapeError unless the shapes fit and there is a class, ConfigError for a label outside [0, c).
DTensor sparse_softmax_cross_entropy(const DTensor& logits, const DTensor& labels);

/// -sum(labels · log softmax(logits)) over the last axis: both (…, c) -> (…)
/// (tf.nn.softmax_cross_entropy_with_logits). A sharded class axis costs reductions of shape (…).
DTensor softmax_cross_entropy(const DTensor& logits, const DTensor& labels);

/// max(x, 0) - x z + log1p(exp(-|x|)), elementwise, of logits x and labels z of one shape
/// (tf.nn.sigmoid_cross_entropy_with_logits). No communication.
DTensor sigmoid_cross_entropy(const DTensor& logits, const DTensor& labels);

}  // namespace tessera::ops
