#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// -log of the probability, summed over all alignments, of label sequences under logits: logits
/// (n, steps, classes), labels (n, length) of an integer dtype -> (n,) (keras.ops.ctc_loss of whole
/// outputs). Class 0 is the blank, and a sequence is as long as it has labels that are not 0. Where
/// it does not fit into the steps the loss is 709, which is about what Keras has on TensorFlow, and
/// its gradient 0. The batch may be cut; steps and classes are gathered. Throws ShapeError unless
/// the shapes fit and there are steps and two classes, ConfigError for a label outside
/// [0, classes) and for a 0 before another label.
DTensor ctc_loss(const DTensor& logits, const DTensor& labels);

}  // namespace tessera::ops
