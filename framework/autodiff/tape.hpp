#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

class Variable;

namespace detail {
class TapeRecord;
}  // namespace detail

/// The options of GradientTape.
struct TapeOptions {
  bool persistent = false;      ///< gradient() may be called more than once
  bool watch_variables = true;  ///< trainable Variables are watched when first used
};

/// The result of gradient() for a source that the target does not depend on: an undefined tensor,
/// or zeros.
enum class Unconnected : uint8_t { none, zero };

/// The options of GradientTape::gradient().
struct GradientOptions {
  /// Gradient of a source that the target does not depend on (default: an undefined tensor).
  Unconnected unconnected = Unconnected::none;
  /// Gradient of a later value with respect to the target (default: ones).
  DTensor output_gradient = {};
  /// Called with the index and gradient of a source as soon as its last contribution has arrived,
  /// while the backward pass goes on. The gradient may be a partial sum.
  std::function<void(size_t source, const DTensor& gradient)> on_ready = {};
  /// Whether the gradient of a table from which few rows were gathered, as by Embedding, may keep
  /// these rows only (tf.IndexedSlices): for optimizers that update by rows
  /// (Optimizer::takes_rows()). Any other use of it makes it dense.
  bool row_sparse = false;
  /// Whether the gradient of a Variable that operations read as float16 or bfloat16
  /// (Variable::read()) may keep that dtype: for optimizers, which widen it for the update, once it
  /// is reduced. With contributions of several dtypes it has the widest.
  bool narrow = false;
};

/// Records operations of this thread while alive and differentiates through them
/// (tf.GradientTape). Tapes nest: an outer one sees the backward pass of an inner one.
///
/// The gradient of a tensor has the tensor's layout. The gradient of a Variable stays as the
/// backward pass leaves it, possibly a partial sum, for the optimizer to reduce once.
class GradientTape final {
 public:
  explicit GradientTape(TapeOptions options = {});
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  /// Makes the tape record what depends on this tensor, so that it can be a source.
  void watch(const DTensor& tensor);
  /// Ends recording; gradient() does so, too, unless the tape is persistent.
  void stop_recording();

  /// Returns the gradients of sum(target) with respect to the sources, which are watched tensors or
  /// Variables' values. Undefined for a source that the target does not depend on. Collective.
  /// Throws StateError when called twice on a tape that is not persistent, when a trainable
  /// Variable was assigned since the forward pass, or for an operation without a derivative.
  std::vector<DTensor> gradient(const DTensor& target, const std::vector<DTensor>& sources,
                                const GradientOptions& options = {});
  DTensor gradient(const DTensor& target, const DTensor& source,
                   const GradientOptions& options = {});
  /// Returns the gradients with respect to Variables, such as a model's trainable_weights().
  std::vector<DTensor> gradient(const DTensor& target, const std::vector<Variable>& sources,
                                const GradientOptions& options = {});
  DTensor gradient(const DTensor& target, const Variable& source,
                   const GradientOptions& options = {});

  // For the runtime, before gradient().
  /// Returns the trainable Variables that recorded operations read; may contain duplicates.
  const std::vector<std::shared_ptr<const detail::VariableTag>>& variables() const;
  /// Returns whether an operation of this name read the result of one named `maker`, possibly cast,
  /// reshaped, transposed or resharded.
  bool took_result(std::string_view name, std::string_view maker) const;

 private:
  std::unique_ptr<detail::TapeRecord> record_;
  bool used_ = false;
};

}  // namespace tessera
