#pragma once

#include <memory>
#include <string>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// A penalty on a weight or an output, added to the loss (keras.regularizers.Regularizer).
class Regularizer {
 public:
  virtual ~Regularizer() = default;
  /// Keras' class name, "L2".
  virtual std::string class_name() const = 0;
  virtual Json config() const = 0;
  /// The penalty, 0-d; often pending over the dimensions that cut `x`.
  virtual DTensor operator()(const DTensor& x) const = 0;
};

/// A handle to a regularizer, also by Keras' name: "l2". None by default.
class RegularizerHandle {
 public:
  RegularizerHandle() = default;
  RegularizerHandle(std::shared_ptr<const Regularizer> made)
      : made_(std::move(made)) {}  // NOLINT: reads as data
  /// Throws ConfigError naming the nearest one.
  RegularizerHandle(const char* name);  // NOLINT
  const Regularizer& operator*() const { return *made_; }
  const Regularizer* operator->() const { return made_.get(); }
  explicit operator bool() const { return made_ != nullptr; }

 private:
  std::shared_ptr<const Regularizer> made_;
};

/// The regularizer of a Keras name, "l1", "l2", "l1_l2", or class name, with its defaults. Throws
/// ConfigError naming the nearest one.
RegularizerHandle make_regularizer(const std::string& name);

}  // namespace tessera
