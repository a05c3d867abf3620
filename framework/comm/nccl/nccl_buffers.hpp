#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/nccl/nccl_api.hpp>

namespace tessera::detail {

/// Returns the ranks that hold members of a group, ascending, as in their NCCL communicator.
std::vector<int> ranks_of(const Group& group);

/// Returns the number of elements of each block; blocks differ only in their extent along `axis`.
std::vector<int64_t> elements_of(Shape shape, int64_t axis, const std::vector<int64_t>& extents);

/// Converts a tensor, made contiguous, to a dtype that NCCL can reduce: bool to uint8, int16 to
/// int32.
at::Tensor to_wire(const at::Tensor& tensor);
/// Converts the result back to the dtype before to_wire().
at::Tensor from_wire(const at::Tensor& tensor, at::ScalarType dtype);
/// Returns NCCL's type of a dtype that to_wire() returns. Throws ConfigError for one that cannot be
/// reduced.
NcclType nccl_type(at::ScalarType wire);
/// Returns NCCL's reduction; the sum of bools is their logical or (max).
NcclOp nccl_op(Reduce kind, at::ScalarType dtype);

/// Positions of the members' blocks of several values in a buffer with one row per rank: a rank's
/// blocks are contiguous, by value and then in member order, and all rows are as long as the
/// longest.
class RankRows {
 public:
  /// `elements`: the number of elements of each member's block, by value.
  RankRows(const Group& group, const std::vector<std::vector<int64_t>>& elements);
  int64_t ranks() const { return static_cast<int64_t>(used_.size()); }
  int64_t length() const { return length_; }
  /// Returns the row and first element of a member's block of a value.
  std::pair<int64_t, int64_t> position(size_t member, size_t value) const {
    return positions_[value][member];
  }
  /// Returns a tensor of `rows` rows; padding is 0.
  at::Tensor make(int64_t rows, const at::TensorOptions& options) const;

 private:
  std::vector<std::vector<std::pair<int64_t, int64_t>>> positions_;
  std::vector<int64_t> used_;
  int64_t length_ = 0;
};

}  // namespace tessera::detail
