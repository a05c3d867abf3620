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

/// The reduction that combines the partial sums (or maxima, minima) of different devices.
enum class Reduce : uint8_t { sum, max, min };

/// "sum", "max", "min".
std::string to_string(Reduce kind);

/// Marks an axis that is not sharded.
inline constexpr const char* unsharded = "unsharded";

/// The mesh dimensions that shard one tensor axis: none (`unsharded`, nullptr), one ("batch"), or
/// several, most significant first ({"height", "width"}).
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

/// The sharding of a tensor's axes over a mesh (tf.experimental.dtensor.Layout). The tensor is
/// replicated over dimensions that no axis uses. A handle: copies share one immutable layout.
///
/// Layouts of the runtime may also be *pending*: each coordinate along the pending dimensions holds
/// a partial sum, and the value is the sum (or max, or min) of these. Operations may return such
/// values; fetch_layout() returns the resolved layout.
class Layout {
 public:
  Layout() = default;
  /// Throws LayoutError for an unknown or repeated mesh dimension.
  Layout(const LayoutSpec& axes, const Mesh& mesh);

  static Layout replicated(const Mesh& mesh, int64_t rank);
  /// Shards the first axis over `dim`.
  static Layout batch_sharded(const Mesh& mesh, const std::string& dim, int64_t rank);
  /// Shards the last axis over `dim`.
  static Layout inner_sharded(const Mesh& mesh, const std::string& dim, int64_t rank);

  bool defined() const { return state_ != nullptr; }
  const Mesh& mesh() const { return state().mesh; }
  int64_t rank() const { return static_cast<int64_t>(state().axes.size()); }
  /// Positions of the mesh dimensions that shard `axis`, most significant first.
  const std::vector<int>& axis(int64_t axis) const {
    return state().axes[static_cast<size_t>(axis)];
  }
  /// Number of shards along an axis.
  int64_t num_shards(int64_t axis) const;
  bool is_fully_replicated() const { return state().sharded == 0 && state().pending == 0; }
  LayoutSpec spec() const;

  /// Returns the layout without the given axes (`Layout.delete` of TensorFlow's guides):
  /// `kernel.remove({0})` is the layout of a kernel's bias. Throws LayoutError for an axis out of
  /// range.
  Layout remove(const std::vector<int64_t>& axes) const;

  /// "sharding_specs:batch,unsharded mesh:name|batch=4|…"; from_string() is the inverse.
  std::string to_string() const;
  static Layout from_string(const std::string& text);
  /// "(batch, unsharded)"; a pending layout adds "+sum over model".
  std::string describe() const;

  bool operator==(const Layout& other) const;
  size_t hash() const { return state_ ? state().hash : 0; }

  // For the runtime.
  DimMask sharded_dims() const { return state().sharded; }
  DimMask partial_dims() const { return state().pending; }
  Reduce partial_kind() const { return state().kind; }
  bool is_partial() const { return state().pending != 0; }
  DimMask used_dims() const { return state().sharded | state().pending; }
  /// Builds a layout from the positions of mesh dimensions of each axis. Throws LayoutError if a
  /// dimension is used twice.
  static Layout from_axes(const Mesh& mesh, std::vector<std::vector<int>> axes, DimMask pending = 0,
                          Reduce kind = Reduce::sum);
  const std::vector<std::vector<int>>& axes() const { return state().axes; }
  Layout with_partial(DimMask dims, Reduce kind) const;
  /// Returns the layout after the partial sum is resolved: replicated over the pending dimensions.
  Layout resolved() const { return is_partial() ? with_partial(0, Reduce::sum) : *this; }

 private:
  struct State {
    Mesh mesh;
    std::vector<std::vector<int>> axes;
    DimMask sharded = 0;
    DimMask pending = 0;
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
