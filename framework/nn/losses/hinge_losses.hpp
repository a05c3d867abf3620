#pragma once

#include <tessera/framework/nn/losses/loss.hpp>

namespace tessera {

/// Mean over the last axis of max(1 - y p, 0), labels y -1 or 1 (keras.losses.Hinge). If all
/// labels of the batch are 0 or 1, 0 means -1.
///
/// Shape: labels and predictions (batch, …, n) -> (batch, …).
/// Communication: an all-reduce of one bool, to find whether all labels are 0 or 1.
class Hinge : public LossHandle {
 public:
  explicit Hinge(LossOptions options = {});
};

/// Mean over the last axis of max(1 - y p, 0)², labels y -1 or 1 (keras.losses.SquaredHinge). If
/// all labels of the batch are 0 or 1, 0 means -1.
///
/// Shape: labels and predictions (batch, …, n) -> (batch, …).
/// Communication: an all-reduce of one bool, to find whether all labels are 0 or 1.
class SquaredHinge : public LossHandle {
 public:
  explicit SquaredHinge(LossOptions options = {});
};

/// max(max((1 - y) p) - sum(y p) + 1, 0) over the last axis, labels y one-hot
/// (keras.losses.CategoricalHinge).
///
/// Shape: labels and predictions (batch, …, classes) -> (batch, …).
class CategoricalHinge : public LossHandle {
 public:
  explicit CategoricalHinge(LossOptions options = {});
};

}  // namespace tessera
