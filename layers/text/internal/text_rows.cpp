#include <tessera/layers/text/internal/text_rows.hpp>

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

namespace tessera::detail {
namespace {

constexpr int64_t rows_per_thread = 64;

}  // namespace

void TextRows::append(const TextRows& more) {
  const int64_t before = ends.empty() ? 0 : ends.back();
  for (const int64_t end : more.ends) ends.push_back(before + end);
  columns.insert(columns.end(), more.columns.begin(), more.columns.end());
  values.insert(values.end(), more.values.begin(), more.values.end());
}

void TextRows::close() {
  if (width >= 0) return;
  int64_t begin = 0;
  for (const int64_t end : ends) {
    width = std::max(width, end - begin);
    begin = end;
  }
  width = std::max<int64_t>(width, 0);
}

void TextRows::fill(int64_t row, Interval interval, float* out) const {
  const auto i = static_cast<size_t>(row);
  const auto first = columns.begin() + (i == 0 ? 0 : ends[i - 1]);
  const auto last = columns.begin() + ends[i];
  for (auto at = std::lower_bound(first, last, interval.lo); at != last && *at < interval.hi;
       ++at) {
    out[*at - interval.lo] = values[static_cast<size_t>(at - columns.begin())];
  }
}

void TextRows::fill(int64_t row, Interval interval, int64_t* out) const {
  const auto i = static_cast<size_t>(row);
  const int64_t begin = i == 0 ? 0 : ends[i - 1];
  const int64_t last = std::min(begin + interval.hi, ends[i]);
  const int64_t first = std::min(begin + interval.lo, last);
  std::copy(columns.begin() + first, columns.begin() + last, out);
}

at::Tensor TextRows::dense_block(std::span<const int64_t> rows, Interval interval) const {
  const auto count = static_cast<int64_t>(rows.size());
  at::Tensor result = at::zeros({count, interval.size()}, sequences ? at::kLong : at::kFloat);
  const auto fill_all = [&](auto* out) {
    at::parallel_for(0, count, rows_per_thread, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        fill(rows[static_cast<size_t>(i)], interval, out + i * interval.size());
      }
    });
  };
  if (sequences) {
    fill_all(result.mutable_data_ptr<int64_t>());
  } else {
    fill_all(result.mutable_data_ptr<float>());
  }
  return result;
}

at::Tensor TextRows::dense(std::span<const int64_t> rows) const {
  return dense_block(rows, {0, width});
}

at::Tensor TextRows::dense() const {
  std::vector<int64_t> all(ends.size());
  std::iota(all.begin(), all.end(), 0);
  return dense(all);
}

DTensor TextRows::placed(std::span<const int64_t> rows, const Layout& layout) const {
  const ShardingPtr sharding = intern({static_cast<int64_t>(rows.size()), width},
                                      sequences ? at::kLong : at::kFloat, layout);
  Blocks blocks;
  for (const BlockInfo& block : sharding->blocks) {
    const Interval row_interval = block.intervals[0];
    const auto block_rows = rows.subspan(static_cast<size_t>(row_interval.lo),
                                         static_cast<size_t>(row_interval.size()));
    blocks.push_back(
        moved_to(dense_block(block_rows, block.intervals[1]), block_device(layout.mesh(), block)));
  }
  return DTensor(sharding, std::move(blocks));
}

}  // namespace tessera::detail
