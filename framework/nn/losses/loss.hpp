#pragma once

#include <array>
#include <string>
#include <utility>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/handle.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// How per-sample losses become one number (Keras' names); sum_over_batch_size and mean are one.
enum class Reduction : uint8_t { sum_over_batch_size, sum, mean, mean_with_sample_weight, none };
/// Keras' names of the reductions, in the order of the enumerators.
std::array<const char*, 5> names_of(Reduction);
/// Keras' name of a reduction.
const char* to_string(Reduction reduction);

/// Base of all losses (keras.losses.Loss): a loss per sample, weighted, reduced. Denominators are
/// global counts known from shapes, so that no layout and no short batch changes the value.
///
/// Communication: unless a loss says otherwise none but along axes that it sums over and that are
/// cut; the sum over the batch stays pending, and its gradient costs nothing.
class Loss {
 public:
  virtual ~Loss() = default;
  /// Keras' class name, "SparseCategoricalCrossentropy".
  virtual std::string class_name() const = 0;
  /// The loss's options by Keras' keys.
  virtual Json config() const = 0;
  /// The loss of each sample: labels and predictions lose their last axis.
  virtual DTensor call(const DTensor& y_true, const DTensor& y_pred) const = 0;
  /// Which of the losses of call() count, a bool for each (Keras' mask); undefined: all.
  virtual DTensor mask(const DTensor&, const DTensor&) const { return {}; }
  /// Whether a training step may be recorded and replayed operation by operation, without calling
  /// the loss again. A program's own loss overrides it where call() does nothing but operations.
  virtual bool can_be_replayed() const { return false; }

  /// call() of predictions in float32, or float64, and labels of their rank.
  DTensor values(const DTensor& y_true, const DTensor& y_pred) const;
  /// The reduced loss, 0-d (per sample for Reduction::none). `sample_weight`, undefined or of a
  /// shape that broadcasts to the per-sample losses, multiplies them. Those that mask() leaves out
  /// count neither in a sum nor in a mean, nor do those that the mask of `y_pred` or of what call()
  /// gives leaves out. The result may be pending. Computed in float32, of float64 predictions in
  /// float64. Throws ShapeError.
  DTensor operator()(const DTensor& y_true, const DTensor& y_pred,
                     const DTensor& sample_weight = {}) const;
  /// How losses of samples become one number.
  Reduction reduction() const { return reduction_; }
  /// What errors call the loss.
  const std::string& name() const { return name_; }

 protected:
  Loss(Reduction reduction, std::string name) : reduction_(reduction), name_(std::move(name)) {}

 private:
  Reduction reduction_;
  std::string name_;
};

/// A handle to a loss, also by Keras' name: "sparse_categorical_crossentropy", "mse".
class LossHandle : public detail::Handle<const Loss> {
 public:
  LossHandle() = default;
  using Handle::Handle;
  /// The loss of this name with its defaults. Throws ConfigError naming the nearest one.
  LossHandle(const char* name);  // NOLINT: reads as data
};

/// Options of the losses that have none of their own.
struct LossOptions {
  Reduction reduction = Reduction::sum_over_batch_size;  ///< how losses become one number
  std::string name = "";  ///< what errors call the loss; empty: the class's in snake_case
};

}  // namespace tessera
