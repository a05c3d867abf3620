#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

/// Unreduced cross-entropies, from logits those on which the losses are built. Each is stable for
/// large logits, and the gradient of the logits has their layout.
namespace tessera::ops {

/// -log softmax(logits)[label]: logits (…, c), labels (…) of an integer dtype -> (…)
/// (tf.nn.sparse_softmax_cross_entropy_with_logits). Fused, without communication, unless the class
/// axis is sharded. A sharded class axis is never all-gathered: the forward pass reduces a max, a
/// sum of exponentials and the label's logit, each of the labels' shape; the backward pass
/// communicates nothing. Large deferred_logits() are read as linear_softmax_cross_entropy() says.
/// Throws ShapeError unless the shapes fit and there is at least one class,
/// ConfigError for a label outside [0, c).
DTensor sparse_softmax_cross_entropy(const DTensor& logits, const DTensor& labels);

/// -sum(labels · log softmax(logits)) over the last axis: both (…, c) -> (…)
/// (tf.nn.softmax_cross_entropy_with_logits). A sharded class axis costs all-reduces of shape (…).
DTensor softmax_cross_entropy(const DTensor& logits, const DTensor& labels);

/// max(x, 0) - x z + log1p(exp(-|x|)), elementwise, for logits x and labels z of the same shape
/// (tf.nn.sigmoid_cross_entropy_with_logits). No communication.
DTensor sigmoid_cross_entropy(const DTensor& logits, const DTensor& labels);

/// Cross-entropies of probabilities or, with `from_logits`, of logits
/// (keras.ops.binary_crossentropy, keras.ops.categorical_crossentropy,
/// keras.ops.sparse_categorical_crossentropy). Probabilities are clipped to [1e-7, 1 - 1e-7], after
/// classes are divided by their sum. Computed in float32 or wider, in the output's dtype.
///
/// binary: -t log p - (1 - t) log(1 - p), elementwise; both of one shape. categorical:
/// -sum(t · log p) along an axis; both of one shape. sparse: -log p[t] along the last axis: output
/// (…, c), target (…) or (…, 1) of an integer dtype -> (…); layouts and errors are those of
/// sparse_softmax_cross_entropy. All throw ShapeError for other shapes.
DTensor binary_crossentropy(const DTensor& target, const DTensor& output, bool from_logits = false);
DTensor categorical_crossentropy(const DTensor& target, const DTensor& output,
                                 bool from_logits = false, int64_t axis = -1);
DTensor sparse_categorical_crossentropy(const DTensor& target, const DTensor& output,
                                        bool from_logits = false);

}  // namespace tessera::ops
