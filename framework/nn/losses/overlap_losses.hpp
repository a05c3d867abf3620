#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/losses/loss.hpp>

namespace tessera {

/// The options of Dice.
struct DiceOptions {
  Reduction reduction = Reduction::sum_over_batch_size;  ///< how losses become one number
  std::string name = "dice";                             ///< what errors call the loss
  std::vector<int64_t> axis = {};  ///< axes that are summed over; empty: all, the batch's too
};

/// 1 - 2 sum(y p) / (sum(y) + sum(p) + 1e-7), for segments of images (keras.losses.Dice; Milletari
/// et al., 2016).
///
/// Shape: labels and predictions of one shape -> that without `axis`, () for all axes.
class Dice : public LossHandle {
 public:
  explicit Dice(DiceOptions options = {});
};

/// The options of Tversky.
struct TverskyOptions {
  double alpha = 0.5;  ///< weight of what is missed, y (1 - p)
  double beta = 0.5;   ///< weight of what is found in excess, p (1 - y)
  Reduction reduction = Reduction::sum_over_batch_size;  ///< how losses become one number
  std::string name = "tversky";                          ///< what errors call the loss
  std::vector<int64_t> axis = {};  ///< axes that are summed over; empty: all, the batch's too
};

/// 1 - s / (s + alpha sum(y (1 - p)) + beta sum(p (1 - y)) + 1e-7) with s = sum(y p), for segments
/// of images (keras.losses.Tversky; Salehi et al., 2017).
///
/// Shape: labels and predictions of one shape -> that without `axis`, () for all axes.
class Tversky : public LossHandle {
 public:
  explicit Tversky(TverskyOptions options = {});
};

}  // namespace tessera
