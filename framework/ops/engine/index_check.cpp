#include <tessera/framework/ops/engine/index_check.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/dtype_name.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {

void check_indices(std::string_view op, std::string_view what, const at::Tensor& indices,
                   int64_t count, std::span<const Interval> ranges) {
  const auto [lowest, highest] = at::aminmax(indices);
  if (lowest.item<int64_t>() >= 0 && highest.item<int64_t>() < count) return;
  const at::Tensor wrong = indices.lt(0).logical_or_(indices.ge(count)).nonzero()[0];
  Shape place;
  at::Tensor value = indices;
  for (int64_t axis = 0; axis < indices.dim(); ++axis) {
    const auto here = wrong[axis].item<int64_t>();
    value = value[here];
    place.push_back(here + (ranges.empty() ? 0 : ranges[static_cast<size_t>(axis)].lo));
  }
  const std::string at = place.empty()       ? ""
                         : place.size() == 1 ? str(" in row ", place[0])
                                             : " at " + to_string(place);
  throw ConfigError(std::string(op), str(what, " lie in [0, ", count, ")"),
                    str(value.item<int64_t>(), at),
                    str("correct the data, or size the axis for ", what, " as large as that"));
}

void check_index_dtype(std::string_view op, std::string_view what, const Spec& in) {
  if (in.dtype == at::kLong) return;
  throw ConfigError(std::string(op), str(what, " have an integer dtype"), dtype_name(in.dtype),
                    "cast them to int64");
}

DTensor as_indices(const DTensor& indices) {
  const bool whole = at::isIntegralType(indices.dtype(), /*includeBool=*/false);
  return whole ? ops::cast(indices, at::kLong) : indices;
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
