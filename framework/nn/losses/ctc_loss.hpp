#pragma once

#include <tessera/framework/nn/losses/loss.hpp>

namespace tessera {

/// -log of the probability of a label sequence under all its alignments (keras.losses.CTC; Graves
/// et al., 2006). Class 0 is the blank: labels have classes from 1 on, and 0 behind their ends.
///
/// Shape: labels (batch, length), logits (batch, steps, classes) -> (batch,).
/// Communication: none where only the batch is cut. Throws ShapeError for other shapes.
class CTC : public LossHandle {
 public:
  explicit CTC(LossOptions options = {});
};

}  // namespace tessera
