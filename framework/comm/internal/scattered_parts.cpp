#include <tessera/framework/comm/internal/scattered_parts.hpp>

#include <ATen/ATen.h>

namespace tessera::detail {

std::vector<int64_t> members_of(const Group& group, int rank) {
  std::vector<int64_t> members;
  for (int64_t m = 0; m < group.size(); ++m) {
    if (group.owner[static_cast<size_t>(m)] == rank) members.push_back(m);
  }
  return members;
}

at::Tensor flat_parts(std::span<const ScatteredValue> values,
                      const std::vector<at::Tensor>& reduced, const std::vector<int64_t>& members) {
  std::vector<at::Tensor> list;
  for (size_t v = 0; v < values.size(); ++v) {
    for (int64_t m : members) {
      const Interval part = values[v].intervals[static_cast<size_t>(m)];
      list.push_back(reduced[v].narrow(values[v].axis, part.lo, part.size()).contiguous().view(-1));
    }
  }
  return list.size() == 1 ? list[0] : at::cat(list);
}

void take_parts(const Group& group, std::span<ScatteredValue> values,
                const std::vector<at::Tensor>& reduced, const at::Tensor& flat) {
  int64_t offset = 0;
  for (size_t v = 0; v < values.size(); ++v) {
    ScatteredValue& value = values[v];
    value.out.clear();
    for (int64_t m : group.local) {
      Shape shape = reduced[v].sizes().vec();
      shape[static_cast<size_t>(value.axis)] = value.intervals[static_cast<size_t>(m)].size();
      value.out.push_back(flat.narrow(0, offset, numel(shape)).view(shape));
      offset += numel(shape);
    }
  }
}

}  // namespace tessera::detail
