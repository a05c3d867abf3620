#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/losses/loss.hpp>

namespace tessera {

/// The options of Dice.
struct DiceOptions {
  Reduction reduction = Reduction::sum_over_batch_size;  ///< reduction of the per-sample losses
  std::string name = "dice";                             ///< name in error messages
  std::vector<int64_t> axis = {};  ///< axes of the sums (default: all, including the batch)
};

/// 1 - 2 sum(y p) / (sum(y) + sum(p) + 1e-7), for image segmentation (keras.losses.Dice; Milletari
/// et al., 2016).
///
/// Shape: labels and predictions of the same shape -> that shape without `axis`; () for all axes.
class Dice : public LossHandle {
 public:
  explicit Dice(DiceOptions options = {});
};

/// The options of Tversky.
struct TverskyOptions {
  double alpha = 0.5;                                    ///< weight of false negatives, y (1 - p)
  double beta = 0.5;                                     ///< weight of false positives, p (1 - y)
  Reduction reduction = Reduction::sum_over_batch_size;  ///< reduction of the per-sample losses
  std::string name = "tversky";                          ///< name in error messages
  std::vector<int64_t> axis = {};  ///< axes of the sums (default: all, including the batch)
};

/// 1 - s / (s + alpha sum(y (1 - p)) + beta sum(p (1 - y)) + 1e-7) with s = sum(y p), for image
/// segmentation (keras.losses.Tversky; Salehi et al., 2017).
///
/// Shape: labels and predictions of the same shape -> that shape without `axis`; () for all axes.
class Tversky : public LossHandle {
 public:
  explicit Tversky(TverskyOptions options = {});
};

}  // namespace tessera
