#pragma once

#include <array>
#include <memory>
#include <string>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// How per-sample losses become one number (Keras' names); sum_over_batch_size and mean are one.
enum class Reduction : uint8_t { sum_over_batch_size, sum, mean, mean_with_sample_weight, none };
/// Keras' names, in the order of the enumerators.
std::array<const char*, 5> names_of(Reduction);
const char* to_string(Reduction reduction);

/// Base of all losses (keras.losses.Loss): a loss per sample, weighted, reduced. Denominators are
/// global counts known from shapes, so that no layout and no short batch changes the value.
class Loss {
 public:
  virtual ~Loss() = default;
  /// Keras' class name, "SparseCategoricalCrossentropy".
  virtual std::string class_name() const = 0;
  virtual Json config() const = 0;
  /// The loss of each sample: labels and predictions lose their last axis.
  virtual DTensor call(const DTensor& y_true, const DTensor& y_pred) const = 0;
  /// Which of the losses of call() count, a bool for each (Keras' mask); undefined: all.
  virtual DTensor valid(const DTensor&, const DTensor&) const { return {}; }

  /// call() of predictions in float32, or float64, and labels of their rank.
  DTensor values(const DTensor& y_true, const DTensor& y_pred) const;
  /// The reduced loss, 0-d (per sample for Reduction::none). `sample_weight`, undefined or of a
  /// shape that broadcasts to the per-sample losses, multiplies them. Those that are not valid()
  /// count neither in a sum nor in a mean, nor do those that the mask of `y_pred` or of what call()
  /// gives leaves out. The result may be pending. Computed in float32, of float64 predictions in
  /// float64. Throws ShapeError.
  DTensor operator()(const DTensor& y_true, const DTensor& y_pred,
                     const DTensor& sample_weight = {}) const;
  Reduction reduction() const { return reduction_; }
  const std::string& name() const { return name_; }

 protected:
  Loss(Reduction reduction, std::string name) : reduction_(reduction), name_(std::move(name)) {}

 private:
  Reduction reduction_;
  std::string name_;
};

/// A handle to a loss, also by Keras' name: "sparse_categorical_crossentropy", "mse".
class LossHandle {
 public:
  LossHandle() = default;
  LossHandle(std::shared_ptr<const Loss> made) : made_(std::move(made)) {}  // NOLINT: reads as data
  /// Throws ConfigError naming the nearest one.
  LossHandle(const char* name);  // NOLINT
  const Loss& operator*() const { return *made_; }
  const Loss* operator->() const { return made_.get(); }
  explicit operator bool() const { return made_ != nullptr; }

 private:
  std::shared_ptr<const Loss> made_;
};

}  // namespace tessera
