#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <tessera/framework/ops/engine/dispatch.hpp>

namespace tessera {

namespace detail {
class TapeWalk;
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
};

/// Records operations of this thread while alive and differentiates through them
/// (tf.GradientTape). Tapes nest: an outer one sees the backward pass of an inner one.
///
/// The gradient of a tensor has the tensor's layout. The gradient of a Variable stays as the
/// backward pass leaves it, possibly a partial sum, for the optimizer to reduce once.
class GradientTape final : private detail::OpListener {
 public:
  explicit GradientTape(TapeOptions options = {});
  ~GradientTape() override;
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  /// Makes the tape record what depends on this tensor, so that it can be a source.
  void watch(const DTensor& tensor);
  /// Ends recording; gradient() does so, too, unless the tape is persistent.
  void stop_recording();

  /// Returns the gradients of sum(target) with respect to the sources, which are watched tensors or
  /// Variables' values. Undefined for a source that the target does not depend on. Collective.
  /// Throws StateError when called twice on a tape that is not persistent, when a Variable was
  /// assigned since the forward pass, or for an operation without a derivative.
  std::vector<DTensor> gradient(const DTensor& target, const std::vector<DTensor>& sources,
                                const GradientOptions& options = {});
  DTensor gradient(const DTensor& target, const DTensor& source,
                   const GradientOptions& options = {});

  // For the runtime, before gradient().
  /// Returns the trainable Variables that recorded operations read; may contain duplicates.
  const std::vector<std::shared_ptr<const detail::VariableTag>>& variables() const {
    return variables_;
  }
  /// Returns whether an operation of this name read the result of one named `maker`, possibly cast,
  /// reshaped, transposed or resharded.
  bool took_result(std::string_view name, std::string_view maker) const;

 private:
  /// Variables, each with its version (number of assignments).
  using Versions = std::vector<std::pair<std::shared_ptr<const detail::VariableTag>, uint64_t>>;
  struct Entry {
    const detail::OpInfo* info;
    std::shared_ptr<const void> op;
    std::vector<uint64_t> in_ids, out_ids;
    std::vector<DTensor> in, out;  ///< undefined where not saved
    std::vector<detail::ShardingPtr> in_shardings, out_shardings;
    uint32_t tracked = 0;         ///< mask of inputs that may need a gradient
    uint32_t rematerialized = 0;  ///< mask of inputs that are rematerialized
    uint32_t out_parameters = 0;  ///< mask of outputs whose gradient may stay pending
    Versions versions;
    std::string place;  ///< label for comm logs and communicators
  };
  /// The operation and inputs from which the backward pass rematerializes a value.
  struct Recipe {
    const detail::OpInfo* info = nullptr;
    std::shared_ptr<const void> op;
    std::vector<DTensor> in;
    Versions versions;
    std::string place;
  };
  friend class detail::TapeWalk;

  void ran(const detail::OpInfo& info, const std::shared_ptr<const void>& op,
           const std::shared_ptr<detail::OpPlan>& plan, std::span<const DTensor> in,
           std::span<const DTensor> out) override;

  void note_kept(const Entry& entry, std::span<const DTensor> in, std::span<const DTensor> out);

  TapeOptions options_;
  bool recording_ = true;
  bool used_ = false;
  std::unordered_set<uint64_t> tracked_;
  std::vector<Entry> entries_;
  std::unordered_map<uint64_t, Recipe> recipes_;
  std::vector<std::shared_ptr<const detail::VariableTag>> variables_;
  /// While planning: values already noted, and the value whose memory a view shares.
  std::unordered_set<uint64_t> noted_;
  std::unordered_map<uint64_t, uint64_t> memory_of_;
};

}  // namespace tessera
