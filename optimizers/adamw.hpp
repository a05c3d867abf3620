#pragma once

#include <tessera/framework/nn/optimizer.hpp>

namespace tessera {

struct AdamWOptions {
  double weight_decay = 0.004;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;
  bool epsilon_on_corrected_root = false;  ///< as AdamOptions'
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2017; keras.optimizers.AdamW).
class AdamW : public OptimizerRef {
 public:
  explicit AdamW(double learning_rate = 0.001, AdamWOptions options = {});
};

}  // namespace tessera
