#pragma once

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/model/model.hpp>
#include <tessera/framework/nn/optimizer/optimizer.hpp>

namespace tessera {

/// The compiled optimizer. Throws StateError if there is none.
inline Optimizer& optimizer_of(const Model& model) {
  if (model.optimizer()) return *model.optimizer();
  throw StateError("fit", "the model is compiled with an optimizer", "no optimizer",
                   "name one in compile()");
}

/// The learning rate as Keras' callbacks see it: rounded to float32, in which Keras keeps it.
inline double rate_of(const Model& model) {
  return static_cast<double>(static_cast<float>(optimizer_of(model).learning_rate()));
}

/// Sets it, rounded so.
inline void set_rate(const Model& model, double rate) {
  optimizer_of(model).set_learning_rate(static_cast<double>(static_cast<float>(rate)));
}

}  // namespace tessera
