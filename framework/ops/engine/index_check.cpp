#include <tessera/framework/ops/engine/index_check.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/index_kernel.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/deferred_checks.hpp>

#include "framework/ops/kernel_texts.hpp"

namespace tessera::detail {

namespace {

void check_on_host(const void* parameters, uint64_t position) {
  kernels::check_index(*static_cast<const kernels::IndexParameters*>(parameters), position);
}

/// Throws the error for the out-of-range index at flat position `position` of the block.
[[noreturn]] void fail_index(std::string_view op, std::string_view what, const at::Tensor& indices,
                             int64_t least, int64_t count, std::span<const Interval> ranges,
                             int64_t position) {
  const auto value = indices.reshape({-1})[position].item<int64_t>();
  Shape at(static_cast<size_t>(indices.dim()));
  for (size_t axis = at.size(); axis-- > 0;) {
    const int64_t extent = indices.size(static_cast<int64_t>(axis));
    at[axis] = position % extent + (ranges.empty() ? 0 : ranges[axis].lo);
    position /= extent;
  }
  const std::string where = at.empty()       ? ""
                            : at.size() == 1 ? str(" in row ", at[0])
                                             : " at " + to_string(at);
  throw ConfigError(std::string(op), str(what, " lie in [", least, ", ", count, ")"),
                    str(value, where),
                    str("correct the data, or make the axis for ", what, " larger"));
}

}  // namespace

const DeviceKernel& index_kernel() {
  static const DeviceKernel kernel{.name = "index_kernel",
                                   .source = kernel_texts::index_kernel,
                                   .on_host = check_on_host,
                                   .parameter_bytes = sizeof(kernels::IndexParameters)};
  return kernel;
}

at::Tensor checked_indices(std::string_view op, std::string_view what, const at::Tensor& indices,
                           int64_t count, std::span<const Interval> ranges, int64_t least) {
  if (indices.numel() == 0) return indices;
  if (indices.is_cpu()) {
    const auto [lowest, highest] = at::aminmax(indices);
    if (lowest.item<int64_t>() >= least && highest.item<int64_t>() < count) return indices;
    const at::Tensor outside = indices.lt(least).logical_or_(indices.ge(count));
    fail_index(op, what, indices, least, count, ranges,
               outside.reshape({-1}).to(at::kByte).argmax().item<int64_t>());
  }
  const auto fail = [op = std::string(op), what = std::string(what), indices, least, count,
                     block_ranges =
                         std::vector<Interval>(ranges.begin(), ranges.end())](int64_t position) {
    fail_index(op, what, indices, least, count, block_ranges, position);
  };
  const at::Tensor dense = indices.contiguous();
  const at::Tensor inside = at::empty_like(dense);
  const at::Tensor first_invalid = deferred_check(dense.device(), fail);
  static_assert(sizeof(long long) == sizeof(int64_t));
  const kernels::IndexParameters parameters{
      .in = static_cast<const long long*>(dense.const_data_ptr()),
      .out = static_cast<long long*>(inside.mutable_data_ptr()),
      .least = least,
      .count = count,
      .first_invalid = static_cast<long long*>(first_invalid.mutable_data_ptr())};
  launch(index_kernel(), dense.device(), static_cast<uint64_t>(dense.numel()), &parameters);
  return inside;
}

at::Tensor clamped_indices(const at::Tensor& indices, int64_t count) {
  return indices.is_cpu() ? indices : indices.clamp(0, count - 1);
}

void check_index_dtype(std::string_view op, std::string_view what, const Spec& in) {
  if (in.dtype == at::kLong) return;
  throw ConfigError(std::string(op), str(what, " have an integer dtype"), dtype_name(in.dtype),
                    "cast them to int64");
}

DTensor to_int64_indices(const DTensor& indices) {
  const bool integral = at::isIntegralType(indices.dtype(), /*includeBool=*/false);
  return integral ? ops::cast(indices, at::kLong) : indices;
}

DTensor axis_marker(int64_t extent, const std::vector<int>& dims,
                    std::initializer_list<DTensor> users) {
  DimMask taken = 0;
  for (const DTensor& user : users) taken |= user.layout().used_dims();
  std::vector<int> free;
  for (int dim : dims) {
    if (!(taken >> dim & 1)) free.push_back(dim);
  }
  const Layout layout = Layout::from_axes(users.begin()->mesh(), {free});
  return filled({extent}, 0, at::kByte, layout);
}

}  // namespace tessera::detail
