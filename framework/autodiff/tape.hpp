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

/// The options of Tape.
struct TapeOptions {
  bool persistent = false;      ///< gradient() may be called more than once
  bool watch_variables = true;  ///< trainable Variables are watched when first used
};

/// What gradient() gives for a source that the target does not depend on.
enum class Unconnected : uint8_t { none, zero };

/// The options of Gradient.
struct GradientOptions {
  /// What a source gets that the target does not depend on: an undefined tensor, or zeros.
  Unconnected unconnected = Unconnected::none;
  /// Gradient of something else with respect to the target; undefined: ones.
  DTensor output_gradient = {};
  /// Called with a source's number and gradient as soon as its last contribution is there, while
  /// the rest of the backward pass is still to come. The gradient may be pending.
  std::function<void(size_t source, const DTensor& gradient)> on_ready = {};
};

/// Records operations of this thread while alive and differentiates through them
/// (tf.GradientTape). Tapes nest: an outer one sees the backward pass of an inner one.
///
/// The layout of a gradient follows its value: of a tensor, the tensor's layout; of a Variable,
/// what the backward pass leaves, possibly pending, for the optimizer to reduce once.
class GradientTape final : private detail::OpListener {
 public:
  explicit GradientTape(TapeOptions options = {});
  ~GradientTape() override;
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  /// Has the tape differentiate with respect to this tensor too.
  void watch(const DTensor& tensor);
  /// Ends recording; gradient() does so too unless the tape is persistent.
  void stop_recording();

  /// Gradients of sum(target) with respect to the sources, which are watched tensors or Variables'
  /// values. Undefined for a source the target does not depend on. Collective. Throws StateError
  /// when called twice on a tape that is not persistent, when a Variable was assigned between the
  /// forward pass and now, or for an operation that has no derivative.
  std::vector<DTensor> gradient(const DTensor& target, const std::vector<DTensor>& sources,
                                const GradientOptions& options = {});
  DTensor gradient(const DTensor& target, const DTensor& source,
                   const GradientOptions& options = {});

  // For the runtime, before gradient().
  /// The trainable Variables that recorded operations took; some twice.
  const std::vector<std::shared_ptr<const detail::VariableTag>>& variables() const {
    return variables_;
  }
  /// Whether an operation of this name took what one named `maker` made, maybe in another form.
  bool took_result(std::string_view name, std::string_view maker) const;

 private:
  /// Variables, and how often each had been assigned.
  using Versions = std::vector<std::pair<std::shared_ptr<const detail::VariableTag>, uint64_t>>;
  struct Entry {
    const detail::OpInfo* info;
    std::shared_ptr<const void> op;
    std::vector<uint64_t> in_ids, out_ids;
    std::vector<DTensor> in, out;  ///< undefined where not saved
    std::vector<detail::ShardingPtr> in_forms, out_forms;
    uint32_t tracked = 0;         ///< inputs that may want a gradient
    uint32_t made_again = 0;      ///< inputs that are saved as what they are made of
    uint32_t out_parameters = 0;  ///< outputs whose gradient stays as it is
    Versions versions;
    std::string place;  ///< for comm logs and communicators
  };
  /// What a value is made of that the backward pass makes again.
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
  /// While planning: values already noted, and which values share whose memory.
  std::unordered_set<uint64_t> noted_;
  std::unordered_map<uint64_t, uint64_t> memory_of_;
};

}  // namespace tessera
