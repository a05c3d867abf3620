#include <tessera/framework/ops/engine/index_check.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/dtype_name.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {

void check_indices(std::string_view op, std::string_view what, const at::Tensor& indices,
                   int64_t count) {
  const auto [lowest, highest] = at::aminmax(indices);
  if (lowest.item<int64_t>() >= 0 && highest.item<int64_t>() < count) return;
  const at::Tensor wrong = indices.masked_select(indices.lt(0).logical_or_(indices.ge(count)));
  throw ConfigError(std::string(op), str(what, " lie in [0, ", count, ")"),
                    str(wrong[0].item<int64_t>()),
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
