#pragma once

#include <tessera/framework/nn/losses/loss.hpp>

namespace tessera {

/// -log of the probability of a label sequence under all its alignments (keras.losses.CTC; Graves
/// et al., 2006). Class 0 is the blank: labels are classes from 1 on, padded with 0 at the end.
///
/// Shape: labels (batch, length), logits (batch, steps, classes) -> (batch,).
/// Communication: none if only the batch axis is sharded. Throws ShapeError for other shapes.
class CTC : public LossHandle {
 public:
  explicit CTC(LossOptions options = {});
};

}  // namespace tessera
