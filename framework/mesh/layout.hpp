#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/handle_state.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/mesh/mesh.hpp>

namespace tessera {

/// How addends that lie on different devices combine into the value.
enum class Reduce : uint8_t { sum, max, min };

/// "sum", "max", "min".
std::string to_string(Reduce kind);

/// The word for an axis that is not cut up.
inline constexpr const char* unsharded = "unsharded";

/// Where one tensor axis goes: nowhere (`unsharded`, nullptr), to one mesh dimension ("batch"), or
/// to several, the first one most significant ({"height", "width"}).
class AxisSpec {
 public:
  AxisSpec(std::nullptr_t) {}                                // NOLINT: reads as data
  AxisSpec(const char* dim) : AxisSpec(std::string(dim)) {}  // NOLINT
  AxisSpec(const std::string& dim) {                         // NOLINT
    if (dim != unsharded) dims_.push_back(dim);
  }
  AxisSpec(std::initializer_list<const char*> dims) {
    for (const char* dim : dims) {
      if (dim && std::string(dim) != unsharded) dims_.emplace_back(dim);
    }
  }
  explicit AxisSpec(std::vector<std::string> dims) : dims_(std::move(dims)) {}
  const std::vector<std::string>& dims() const { return dims_; }
  bool operator==(const AxisSpec&) const = default;

 private:
  std::vector<std::string> dims_;
};

/// One AxisSpec per tensor axis: {unsharded, "model"}.
using LayoutSpec = std::vector<AxisSpec>;

/// "(unsharded, model)".
std::string to_string(const LayoutSpec& spec);

/// How a tensor's axes are cut over a mesh (tf.experimental.dtensor.Layout). Dimensions that no
/// axis uses hold replicas. A handle: copies share one immutable layout.
///
/// The runtime's own layouts may also be *pending*: each coordinate along the pending dimensions
/// holds an addend, and the value is their sum (or max, or min). Users neither write nor see these.
class Layout {
 public:
  Layout() = default;
  /// Throws LayoutError for a dimension the mesh lacks or one used twice.
  Layout(const LayoutSpec& axes, const Mesh& mesh);

  static Layout replicated(const Mesh& mesh, int64_t rank);
  /// First axis over `dim`, the others unsharded.
  static Layout batch_sharded(const Mesh& mesh, const std::string& dim, int64_t rank);
  /// Last axis over `dim`, the others unsharded.
  static Layout inner_sharded(const Mesh& mesh, const std::string& dim, int64_t rank);

  bool defined() const { return state_ != nullptr; }
  const Mesh& mesh() const { return state().mesh; }
  int64_t rank() const { return static_cast<int64_t>(state().axes.size()); }
  /// Mesh dimensions, by position, that cut `axis`; most significant first.
  const std::vector<int>& axis(int64_t axis) const {
    return state().axes[static_cast<size_t>(axis)];
  }
  /// Number of shards along an axis.
  int64_t num_shards(int64_t axis) const;
  bool is_fully_replicated() const { return state().sharded == 0 && state().pending == 0; }
  LayoutSpec spec() const;

  /// The layout without the given axes (the guides' `delete`): a bias' layout from its kernel's is
  /// `kernel.remove({0})`. Throws LayoutError for an axis it lacks.
  Layout remove(const std::vector<int64_t>& axes) const;

  /// "sharding_specs:batch,unsharded mesh:name|batch=4|…", and back.
  std::string to_string() const;
  static Layout from_string(const std::string& text);
  /// "(batch, unsharded)"; a pending layout adds "+sum over model".
  std::string describe() const;

  bool operator==(const Layout& other) const;
  size_t hash() const { return state_ ? state().hash : 0; }

  // For the runtime.
  detail::DimMask sharded_dims() const { return state().sharded; }
  detail::DimMask pending_dims() const { return state().pending; }
  Reduce pending_kind() const { return state().kind; }
  bool is_pending() const { return state().pending != 0; }
  detail::DimMask used_dims() const { return state().sharded | state().pending; }
  /// The layout of positions of mesh dimensions, by axis. Throws LayoutError if one is used twice.
  static Layout from_axes(const Mesh& mesh, std::vector<std::vector<int>> axes,
                          detail::DimMask pending = 0, Reduce kind = Reduce::sum);
  const std::vector<std::vector<int>>& axes() const { return state().axes; }
  Layout with_pending(detail::DimMask dims, Reduce kind) const;
  /// The layout of the value once its pending reduction is done: replicated over those dimensions.
  Layout resolved() const { return is_pending() ? with_pending(0, Reduce::sum) : *this; }

 private:
  struct State {
    Mesh mesh;
    std::vector<std::vector<int>> axes;
    detail::DimMask sharded = 0;
    detail::DimMask pending = 0;
    Reduce kind = Reduce::sum;
    size_t hash = 0;
  };
  explicit Layout(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const State& state() const {
    return detail::handle_state(state_, "Layout", "name its axes and give it a mesh");
  }

  std::shared_ptr<const State> state_;
};

}  // namespace tessera
