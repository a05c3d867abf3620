#include <tessera/layers/preprocessing/internal/number_counts.hpp>

#include <algorithm>
#include <set>

#include <ATen/ATen.h>

namespace tessera::detail {

void NumberCounts::add(const at::Tensor& data) {
  if (data.dim() == 0) return add(data.reshape({1, 1}));
  if (data.numel() == 0) return;
  const at::Tensor rows = data.cpu().to(at::kLong).reshape({data.size(0), -1}).contiguous();
  const int64_t* number = rows.const_data_ptr<int64_t>();
  for (int64_t row = 0; row < rows.size(0); ++row) {
    ++documents_;
    std::set<int64_t> seen_in_row;
    for (int64_t i = 0; i < rows.size(1); ++i, ++number) {
      NumberCount& known = counts_[*number];
      known.number = *number;
      ++known.count;
      if (seen_in_row.insert(*number).second) ++known.documents;
    }
  }
}

std::vector<NumberCount> NumberCounts::top_by_count(int64_t limit,
                                                    std::span<const int64_t> excluded) const {
  std::vector<NumberCount> all;
  for (auto known = counts_.rbegin(); known != counts_.rend(); ++known) {
    const bool out = std::find(excluded.begin(), excluded.end(), known->first) != excluded.end();
    if (!out) all.push_back(known->second);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const NumberCount& a, const NumberCount& b) { return a.count > b.count; });
  if (limit >= 0 && static_cast<int64_t>(all.size()) > limit) all.resize(size_t(limit));
  return all;
}

}  // namespace tessera::detail
