#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/nccl/nccl_api.hpp>

namespace tessera::detail {

/// The ranks that hold members of a group, ascending: their order in an NCCL communicator.
std::vector<int> ranks_of(const Group& group);

/// The numbers of elements of parts that differ in their extents along an axis only.
std::vector<int64_t> elements_of(Shape shape, int64_t axis, const std::vector<int64_t>& extents);

/// The tensor in the dtype in which NCCL reduces one that it may not know: bool as uint8, int16 as
/// int32.
at::Tensor to_wire(const at::Tensor& tensor);
at::Tensor from_wire(const at::Tensor& tensor, at::ScalarType dtype);
/// NCCL's name of a dtype that to_wire() gives. Throws ConfigError for one that cannot be reduced.
NcclType nccl_type(at::ScalarType wire);
/// The sum of bools is whether one of them is set.
NcclOp nccl_op(Reduce kind, at::ScalarType dtype);

/// Where the members' parts of a value lie in one row a rank: a rank's parts follow each other, in
/// member order, and all rows are as long as the longest.
class RankRows {
 public:
  /// `elements` of each member's part.
  RankRows(const Group& group, const std::vector<int64_t>& elements);
  int64_t ranks() const { return static_cast<int64_t>(used_.size()); }
  int64_t length() const { return length_; }
  /// Row and first element of a member's part.
  std::pair<int64_t, int64_t> place(size_t member) const { return places_[member]; }
  /// A tensor of all rows; what no part covers is 0.
  at::Tensor make(int64_t rows, const at::TensorOptions& options) const;

 private:
  std::vector<std::pair<int64_t, int64_t>> places_;
  std::vector<int64_t> used_;
  int64_t length_ = 0;
};

}  // namespace tessera::detail
