#include <tessera/framework/comm/nccl/nccl_buffers.hpp>

#include <algorithm>
#include <set>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/dtype_name.hpp>

namespace tessera::detail {

std::vector<int> ranks_of(const Group& group) {
  const std::set<int> ranks(group.owner.begin(), group.owner.end());
  return {ranks.begin(), ranks.end()};
}

std::vector<int64_t> elements_of(Shape shape, int64_t axis, const std::vector<int64_t>& extents) {
  std::vector<int64_t> list;
  for (int64_t extent : extents) {
    shape[static_cast<size_t>(axis)] = extent;
    list.push_back(numel(shape));
  }
  return list;
}

at::Tensor to_wire(const at::Tensor& tensor) {
  const at::Tensor contiguous = tensor.contiguous();
  if (contiguous.scalar_type() == at::kBool) return contiguous.view(at::kByte);
  if (contiguous.scalar_type() == at::kShort) return contiguous.to(at::kInt);
  return contiguous;
}

at::Tensor from_wire(const at::Tensor& tensor, at::ScalarType dtype) {
  if (dtype == at::kBool) return tensor.view(at::kBool);
  return tensor.to(dtype);
}

NcclType nccl_type(at::ScalarType wire) {
  switch (wire) {
    case at::kFloat:
      return NcclType::float32;
    case at::kDouble:
      return NcclType::float64;
    case at::kHalf:
      return NcclType::float16;
    case at::kBFloat16:
      return NcclType::bfloat16;
    case at::kChar:
      return NcclType::int8;
    case at::kByte:
      return NcclType::uint8;
    case at::kInt:
      return NcclType::int32;
    case at::kLong:
      return NcclType::int64;
    default:
      throw ConfigError("nccl", "floating, integer and bool values can be reduced",
                        dtype_name(wire), "cast it to one of these dtypes");
  }
}

NcclOp nccl_op(Reduce kind, at::ScalarType dtype) {
  if (kind == Reduce::sum) return dtype == at::kBool ? NcclOp::max : NcclOp::sum;
  return kind == Reduce::max ? NcclOp::max : NcclOp::min;
}

RankRows::RankRows(const Group& group, const std::vector<std::vector<int64_t>>& elements)
    : positions_(elements.size()) {
  const std::vector<int> ranks = ranks_of(group);
  used_.resize(ranks.size(), 0);
  for (size_t v = 0; v < elements.size(); ++v) {
    for (size_t m = 0; m < elements[v].size(); ++m) {
      const auto row = std::lower_bound(ranks.begin(), ranks.end(), group.owner[m]) - ranks.begin();
      int64_t& used = used_[static_cast<size_t>(row)];
      positions_[v].emplace_back(row, used);
      used += elements[v][m];
      length_ = std::max(length_, used);
    }
  }
}

at::Tensor RankRows::make(int64_t rows, const at::TensorOptions& options) const {
  const bool even =
      std::all_of(used_.begin(), used_.end(), [&](int64_t used) { return used == length_; });
  return even ? at::empty({rows, length_}, options) : at::zeros({rows, length_}, options);
}

}  // namespace tessera::detail
