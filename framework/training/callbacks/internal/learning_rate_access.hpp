#pragma once

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/training/trainer.hpp>

namespace tessera::detail {

/// Returns the compiled optimizer. Throws StateError if there is none.
inline Optimizer& optimizer_of(const Trainer& model) {
  if (model.optimizer()) return *model.optimizer();
  throw StateError("fit", "the model is compiled with an optimizer", "no optimizer",
                   "name one in compile()");
}

/// Returns the learning rate as Keras' callbacks see it: rounded to float32, Keras' dtype for it.
inline double rate_of(const Trainer& model) {
  return static_cast<double>(static_cast<float>(optimizer_of(model).learning_rate()));
}

/// Sets the learning rate, rounded to float32.
inline void set_rate(const Trainer& model, double rate) {
  optimizer_of(model).set_learning_rate(static_cast<double>(static_cast<float>(rate)));
}

}  // namespace tessera::detail
