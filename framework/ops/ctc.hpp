#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// CTC loss: -log of the probability of each label sequence, summed over all its alignments. logits
/// (n, steps, classes), labels (n, length) of an integer dtype -> (n,) (keras.ops.ctc_loss with
/// full-length outputs). Class 0 is the blank; a sequence ends at its first 0. If a sequence does
/// not fit into the steps, its loss is 709, about what Keras returns on TensorFlow, and its
/// gradient is 0. The batch keeps its sharding; steps and classes are all-gathered. Throws
/// ShapeError unless the shapes fit and there are at least one step and two classes, ConfigError
/// for a label outside [0, classes) and for a 0 before another label.
DTensor ctc_loss(const DTensor& logits, const DTensor& labels);

}  // namespace tessera::ops
