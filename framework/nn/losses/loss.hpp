#pragma once

#include <array>
#include <string>
#include <utility>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/handle.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// The reduction of per-sample losses (Keras' names); sum_over_batch_size and mean are the same.
enum class Reduction : uint8_t { sum_over_batch_size, sum, mean, mean_with_sample_weight, none };
/// Keras' names of the reductions, in the order of the enumerators.
std::array<const char*, 5> names_of(Reduction);
/// Keras' name of a reduction.
const char* to_string(Reduction reduction);

/// Base of all losses (keras.losses.Loss): computes per-sample losses, weights and reduces them.
/// Denominators are global counts known from shapes, so that neither the layout nor a short batch
/// distorts the value.
///
/// Communication, unless a loss documents otherwise: only along sharded axes that it sums over. The
/// sum over the batch remains a partial sum, and its gradient costs no communication.
class Loss {
 public:
  virtual ~Loss() = default;
  /// Keras' class name, "SparseCategoricalCrossentropy".
  virtual std::string class_name() const = 0;
  /// Returns the loss's options by Keras' keys.
  virtual Json config() const = 0;
  /// Computes per-sample losses, usually reducing the last axis of labels and predictions.
  virtual DTensor call(const DTensor& y_true, const DTensor& y_pred) const = 0;
  /// Returns a bool for each loss of call(): whether it counts (Keras' mask); undefined: all count.
  virtual DTensor mask(const DTensor&, const DTensor&) const { return {}; }
  /// Whether call() reads deferred predictions (ops::deferred_logits()) in any dtype, without
  /// computing them, and returns float32 or wider.
  virtual bool reads_deferred(const DTensor& /*y_pred*/) const { return false; }
  /// Whether a training step may be captured and replayed operation by operation, without calling
  /// the loss again. Override it in your own loss if call() consists of operations only.
  virtual bool can_be_replayed() const { return false; }

  /// Runs call() on predictions cast to float32 (float64 stays) and labels of the same rank.
  DTensor values(const DTensor& y_true, const DTensor& y_pred) const;
  /// Returns the reduced loss, 0-d (per sample for Reduction::none). `sample_weight`, if defined,
  /// multiplies the per-sample losses. It has their shape or the first axes of it, so that (n,)
  /// weights the rows of losses (n, t); an extent may be 1. Losses excluded by mask(), by the mask
  /// of `y_pred` or by that of the result of call() count neither in sums nor in means. The result
  /// may be a partial sum. Computed in float32, or float64 for float64 predictions. Throws
  /// ShapeError.
  DTensor operator()(const DTensor& y_true, const DTensor& y_pred,
                     const DTensor& sample_weight = {}) const;
  /// The reduction of the per-sample losses.
  Reduction reduction() const { return reduction_; }
  /// The loss's name in error messages.
  const std::string& name() const { return name_; }

 protected:
  Loss(Reduction reduction, std::string name) : reduction_(reduction), name_(std::move(name)) {}

 private:
  /// Returns predictions in the dtype of the loss; those that it reads deferred as they are.
  DTensor in_loss_dtype(const DTensor& y_pred) const;

  Reduction reduction_;
  std::string name_;
};

/// A handle to a loss, also by Keras' name: "sparse_categorical_crossentropy", "mse".
class LossHandle : public Handle<const Loss> {
 public:
  LossHandle() = default;
  using Handle::Handle;
  /// Creates the loss with this name, with defaults. Throws ConfigError naming the nearest one.
  LossHandle(const char* name);  // NOLINT: reads as data
  /// Loss::operator(): `loss(y, model(x))`.
  DTensor operator()(const DTensor& y_true, const DTensor& y_pred,
                     const DTensor& sample_weight = {}) const {
    return (**this)(y_true, y_pred, sample_weight);
  }
};

/// The options of losses without further ones.
struct LossOptions {
  Reduction reduction = Reduction::sum_over_batch_size;  ///< reduction of the per-sample losses
  std::string name = "";  ///< name in errors (default: the class name in snake_case)
};

}  // namespace tessera
