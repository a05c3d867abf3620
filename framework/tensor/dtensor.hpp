#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <tessera/framework/base/internal/handle_state.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>

namespace tessera {

namespace detail {

/// One tensor for each block of a Sharding, in order. Undefined: an absent addend.
using Blocks = c10::SmallVector<at::Tensor, 4>;

/// What a Variable's value carries: the Variable's identity, and how often it was assigned.
struct VariableTag {
  uint64_t id = 0;
  uint64_t version = 0;
  bool trainable = true;
  std::string path = "";  ///< for texts
};

}  // namespace detail

/// A tensor cut over a mesh, seen whole: its shape is the global one, and operations on it give
/// what one device would. A handle: copies share one value, which no operation changes.
class DTensor {
 public:
  DTensor() = default;
  /// For the runtime: blocks that belong to the sharding.
  DTensor(detail::ShardingPtr sharding, detail::Blocks blocks);

  bool defined() const { return state_ != nullptr; }
  const Shape& shape() const { return state().sharding->shape; }
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  int64_t size(int64_t axis) const;
  int64_t numel() const { return detail::numel(shape()); }
  at::ScalarType dtype() const { return state().sharding->dtype; }
  /// The layout of the value; a pending reduction is shown as it is.
  const Layout& layout() const { return state().sharding->layout; }
  const Mesh& mesh() const { return layout().mesh(); }

  /// The whole tensor, on every process. Collective. Memory may be shared with the value: only read
  /// it.
  at::Tensor full() const;
  /// The shard that local device `device` (a position in Mesh::local_devices()) holds; a view.
  /// Never communicates. Throws StateError while a reduction is pending.
  at::Tensor local(int device) const;
  /// The number in a tensor of one element. Never communicates: throws StateError if the value is
  /// not complete here.
  template <class T = double>
  T item() const {
    return complete_element().item<T>();
  }
  /// Shape, dtype and layout; the numbers where they are complete here and few.
  std::string to_string() const;

  /// Which steps of a sequence count: bool, of the leading axes of this value's shape. Undefined if
  /// all do (Keras' _keras_mask).
  DTensor mask() const;
  /// This value with another mask; an undefined mask takes it away.
  DTensor with_mask(const DTensor& mask) const;

  // For the runtime.
  const detail::ShardingPtr& sharding() const { return state().sharding; }
  const detail::Blocks& blocks() const { return state().blocks; }
  /// Tells values apart on a tape; a Variable's value keeps its Variable's identity.
  uint64_t id() const { return state().tag ? state().tag->id : state().id; }
  /// Makes this the value of a Variable.
  void set_tag(std::shared_ptr<const detail::VariableTag> tag) const {
    state().tag = std::move(tag);
    state().parameter = true;
  }
  const std::shared_ptr<const detail::VariableTag>& tag() const { return state().tag; }
  /// A Variable's value, or one through cast, transpose or reshape.
  bool is_parameter() const { return state().parameter; }
  void mark_parameter() const { state().parameter = true; }
  /// Puts an equal value in another form into this handle and all its copies.
  void replace(const DTensor& equal) const;
  /// Whether both handles are of one value, not of an equal one.
  bool is(const DTensor& other) const { return state_ == other.state_; }
  /// True if nobody else holds the blocks' memory.
  bool owns_memory() const;
  /// Fresh identity.
  static uint64_t next_id();

 private:
  struct State {
    detail::ShardingPtr sharding;
    detail::Blocks blocks;
    uint64_t id = 0;
    bool parameter = false;
    std::shared_ptr<const detail::VariableTag> tag;
    std::shared_ptr<const DTensor> mask;
  };
  at::Tensor complete_element() const;

  State& state() const {
    return detail::handle_state(
        state_, "DTensor", "a gradient is empty where the target does not depend on the source");
  }

  std::shared_ptr<State> state_;
};

}  // namespace tessera
