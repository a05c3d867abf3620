#include <tessera/framework/training/internal/non_finite.hpp>

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/bucket.hpp>

namespace tessera::detail {
namespace {

/// Returns the first row that is not finite, "x[0] of the batch, row 3"; empty if all are finite.
std::string bad_row(const std::vector<DTensor>& list, const char* name) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].defined() || !at::isFloatingType(list[i].dtype())) continue;
    const at::Tensor values = list[i].full();
    if (all_finite(values)) continue;
    const at::Tensor rows = at::isfinite(values.reshape({values.size(0), -1})).all(1);
    const int64_t row = at::argmin(rows.to(at::kByte)).item<int64_t>();
    return str(name, "[", i, "] of the batch, row ", row);
  }
  return "";
}

}  // namespace

void check_finite_blocks(const DTensor& loss) {
  if (is_abstract()) return;
  const std::vector<BlockInfo>& infos = loss.sharding()->blocks;
  std::vector<std::string> devices;
  double bad = 0;
  for (size_t b = 0; b < infos.size(); ++b) {
    const at::Tensor& block = loss.blocks()[b];
    if (!block.defined()) continue;
    if (!block.device().is_cpu()) return;
    if (at::isfinite(block).item<bool>()) continue;
    bad = block.item<double>();
    for (int device : infos[b].devices) {
      devices.push_back(to_string(loss.mesh().local_devices()[static_cast<size_t>(device)]));
    }
  }
  if (devices.empty()) return;
  const bool all = devices.size() == loss.mesh().local_devices().size();
  throw NonFiniteLoss(bad, all ? "" : join(devices, ", "));
}

std::string source_of_non_finite(const Layer& model, const Batch& batch) {
  for (const Variable& weight : model.weights()) {
    if (!weight.has_value() || !at::isFloatingType(weight.dtype())) continue;
    for (const at::Tensor& block : weight.value().blocks()) {
      if (block.defined() && !all_finite(block)) {
        return str(weight.path(), " has infinite numbers or NaN since the previous step");
      }
    }
  }
  for (const auto& [list, name] : {std::pair(&batch.x, "x"), std::pair(&batch.y, "y"),
                                   std::pair(&batch.sample_weight, "sample_weight")}) {
    const std::string row = bad_row(*list, name);
    if (!row.empty()) return row + " has infinite numbers or NaN";
  }
  return "weights and data are finite, but values computed by the step are not";
}

}  // namespace tessera::detail
