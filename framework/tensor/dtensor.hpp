#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <tessera/framework/base/internal/handle_state.hpp>
#include <tessera/framework/tensor/axis_item.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>

namespace tessera {

namespace detail {

/// One tensor per block of a Sharding, in order. An undefined one adds nothing to a partial sum.
/// A row-sparse value has ATen's sparse tensors, whose first axis is sparse.
using Blocks = c10::SmallVector<at::Tensor, 4>;

/// Marks a DTensor as a Variable's value: the Variable's id, and the number of its assignments.
struct VariableTag {
  uint64_t id = 0;
  uint64_t version = 0;
  bool trainable = true;
  std::string path = "";  ///< path of the Variable, for error messages
  uint64_t expected = 0;  ///< the number of assignments by a layer's call, which tapes expect

  uint64_t unexpected() const { return version - expected; }
};

/// Makes values that are computed when they are first read; see deferred_value.hpp.
struct DeferredValue;

}  // namespace detail

/// A tensor sharded over a mesh, used like one tensor: it has the global shape, and operations on
/// it return what a single device would compute. A handle: copies share one value, which operations
/// never change. A default-constructed one is empty; only defined() may be called on it.
class DTensor {
 public:
  DTensor() = default;
  /// Wraps the blocks of a sharding. Used by the runtime.
  DTensor(detail::ShardingPtr sharding, detail::Blocks blocks);

  bool defined() const { return state_ != nullptr; }
  const Shape& shape() const { return state().sharding->shape; }
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  int64_t size(int64_t axis) const;
  int64_t numel() const { return detail::numel(shape()); }
  at::ScalarType dtype() const { return state().sharding->dtype; }
  /// Returns the layout; for a partial sum, that of the partial sum (Layout::is_partial). See
  /// fetch_layout().
  const Layout& layout() const { return placed().sharding->layout; }
  const Mesh& mesh() const { return state().sharding->layout.mesh(); }

  /// Returns the global tensor on the CPU of every process, contiguous, with partial sums resolved;
  /// of a value on a view, on every process of the whole mesh. Collective. It may share memory with
  /// the value: do not write to it.
  at::Tensor full() const;
  /// Returns the shard of local device `device` (an index into Mesh::local_devices()) on the host:
  /// a view of a CPU device's shard, which must not be written to; a copy of a GPU's. Never
  /// communicates. Throws StateError for a partial sum, MeshError for a device that this process
  /// lacks.
  at::Tensor local(int device) const;
  /// Returns the element of a one-element tensor. Never communicates; instead, throws StateError
  /// unless the value is replicated. Throws ShapeError for another number of elements.
  template <class T = double>
  T item() const {
    return complete_element().item<T>();
  }
  /// Indexes and slices as in Python: "..." stands for all axes not named, "None" inserts an axis.
  ///
  ///     x[0], x["1:3"], x[{":", "0:10"}], x[{"...", -1}]
  ///
  /// Shards of a sliced axis fetch what they lack. Throws ConfigError for other texts and for an
  /// index that is out of range.
  DTensor operator[](std::initializer_list<AxisItem> items) const;
  DTensor operator[](const char* slice) const { return (*this)[{AxisItem(slice)}]; }
  template <std::integral T>
  DTensor operator[](T index) const {
    return (*this)[{AxisItem(index)}];
  }

  /// Returns shape, dtype and layout, and the elements if the value is replicated: of a large one,
  /// those at the ends of its axes. Never communicates.
  std::string to_string() const;

  /// Returns the mask of valid timesteps (Keras' _keras_mask): bool, shaped like the leading axes
  /// of this value. Undefined if all are valid.
  DTensor mask() const;
  /// Returns this value with another mask; an undefined mask removes it.
  DTensor with_mask(const DTensor& mask) const;

  // Used by the runtime.
  const detail::ShardingPtr& sharding() const { return placed().sharding; }
  /// Returns the dense blocks; makes those of a row-sparse value dense first, in all its handles.
  const detail::Blocks& blocks() const {
    if (ready().row_sparse) make_dense();
    return state().blocks;
  }
  /// Whether the blocks hold only some rows, the others being 0; see GradientOptions::row_sparse.
  bool is_row_sparse() const { return ready().row_sparse; }
  /// Returns the blocks as they are, dense or row-sparse.
  const detail::Blocks& stored_blocks() const { return ready().blocks; }
  /// Returns the value's id on a tape: the Variable's id if this is a Variable's value.
  uint64_t id() const { return placed().tag ? state().tag->id : state().id; }
  /// Marks this as the value of a Variable, and as a parameter.
  void set_tag(std::shared_ptr<const detail::VariableTag> tag) const {
    state().tag = std::move(tag);
    state().parameter = true;
  }
  const std::shared_ptr<const detail::VariableTag>& tag() const { return state().tag; }
  /// Whether this is a Variable's value, or derived from one by cast, transpose or reshape.
  bool is_parameter() const { return placed().parameter; }
  void mark_parameter() const { state().parameter = true; }
  /// Replaces the blocks of this handle and all its copies with those of an equal value in another
  /// sharding.
  void replace(const DTensor& equal) const;
  /// Whether both are handles of the same value, not merely of equal values.
  bool is(const DTensor& other) const { return state_ == other.state_; }
  /// Whether nothing else holds the blocks' memory.
  bool owns_memory() const;
  /// Returns an unused id.
  static uint64_t next_id();

 private:
  friend struct detail::DeferredValue;
  struct State {
    detail::ShardingPtr sharding;
    detail::Blocks blocks;
    uint64_t id = 0;
    bool parameter = false;
    bool row_sparse = false;
    std::shared_ptr<const detail::VariableTag> tag;
    std::shared_ptr<const DTensor> mask;
    std::shared_ptr<const detail::DeferredValue> deferred;
    bool layout_deferred = false;  ///< whether `sharding` has only the value's shape and dtype
  };
  at::Tensor complete_element() const;
  void make_dense() const;
  /// Computes a deferred value, in all its handles.
  void compute_deferred() const;

  State& state() const {
    return detail::handle_state(
        state_, "DTensor", "a gradient is empty where the target does not depend on the source");
  }

  /// Returns the state of a value whose layout is known.
  State& placed() const {
    State& here = state();
    if (here.layout_deferred) compute_deferred();
    return here;
  }

  /// Returns the state of a value that is computed.
  State& ready() const {
    State& here = state();
    if (here.deferred) compute_deferred();
    return here;
  }

  std::shared_ptr<State> state_;
};

/// Prints to_string().
std::ostream& operator<<(std::ostream& out, const DTensor& value);

}  // namespace tessera
