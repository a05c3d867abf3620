#include <tessera/framework/nn/optimizer/internal/gradient_clipping.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/nn/optimizer/internal/for_each_block.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

namespace tessera::detail {
namespace {

/// Values cut over the same mesh dimensions.
struct CutSet {
  Layout layout;  ///< of the vector of their sums: pending over these dimensions
  std::vector<size_t> members;
};

/// A block of one of several values.
struct BlockIndex {
  size_t value, block;
};

/// Calls run(index) for every block of every value, small ones in parallel.
template <class Run>
void each_block(const std::vector<DTensor>& values, const Run& run) {
  std::vector<BlockIndex> places;
  std::vector<at::Tensor> blocks;
  for (size_t v = 0; v < values.size(); ++v) {
    for (size_t b = 0; b < values[v].blocks().size(); ++b) {
      places.push_back({v, b});
      blocks.push_back(values[v].blocks()[b]);
    }
  }
  for_each_block(blocks, [&](size_t i) { run(places[i]); });
}

/// Every block f(value, block), in new values.
template <class F>
std::vector<DTensor> map_blocks(const std::vector<DTensor>& values, const F& f) {
  std::vector<Blocks> blocks;
  for (const DTensor& value : values) blocks.emplace_back(value.blocks().size());
  each_block(values, [&](BlockIndex at) {
    blocks[at.value][at.block] = f(at.value, values[at.value].blocks()[at.block]);
  });
  std::vector<DTensor> results;
  for (size_t v = 0; v < values.size(); ++v) {
    results.emplace_back(values[v].sharding(), std::move(blocks[v]));
  }
  return results;
}

double sum_of_squares(const at::Tensor& block) {
  // Squares of half types overflow.
  const bool half = block.element_size() < 4;
  return at::sum(at::square(half ? block.to(at::kFloat) : block)).item<double>();
}

double count_of_others(const at::Tensor& block) {
  return static_cast<double>(block.numel() - at::isfinite(block).sum().item<int64_t>());
}

/// The dimensions of more than one device that cut a value.
DimMask cutting_dims(const Layout& layout) {
  DimMask dims = layout.sharded_dims();
  for (int d = 0; d < layout.mesh().rank(); ++d) {
    if (layout.mesh().dim_size(d) == 1) dims &= ~(DimMask{1} << d);
  }
  return dims;
}

std::vector<CutSet> cut_sets(const std::vector<DTensor>& values) {
  std::vector<CutSet> sets;
  for (size_t v = 0; v < values.size(); ++v) {
    Layout layout = Layout::replicated(values[v].mesh(), 1);
    const DimMask dims = cutting_dims(values[v].layout());
    if (dims) layout = layout.with_pending(dims, Reduce::sum);
    const auto found = std::find_if(sets.begin(), sets.end(),
                                    [&](const CutSet& set) { return set.layout == layout; });
    if (found == sets.end()) {
      sets.push_back({layout, {v}});
    } else {
      found->members.push_back(v);
    }
  }
  return sets;
}

/// Coordinates along a mesh dimension that a block stands for in this process.
Interval coordinates(const Sharding& sharding, const BlockInfo& block, size_t d) {
  const int64_t size = sharding.mesh().dim_size(static_cast<int>(d));
  return intersect(group_range(size, sharding.groups[d], block.group[d]),
                   sharding.mesh().local_box()[d]);
}

/// Whether a value's block belongs to a block of its set's sums: to exactly one of them along the
/// dimensions that cut the value; along the others each sum takes one replica.
bool adds_to(const Sharding& from, const BlockInfo& block, const Sharding& sums,
             const BlockInfo& sum) {
  for (size_t d = 0; d < block.group.size(); ++d) {
    const Interval have = coordinates(from, block, d), want = coordinates(sums, sum, d);
    const bool cut = sums.layout.pending_dims() >> d & 1;
    const Interval range = cut ? want : have;
    const int64_t first = cut ? have.lo : want.lo;
    if (first < range.lo || first >= range.hi) return false;
  }
  return true;
}

/// Sums of f(block) over whole values. Collective.
template <class F>
std::vector<double> sums_of(const std::vector<DTensor>& values, const F& f) {
  std::vector<std::vector<double>> sums;
  for (const DTensor& value : values) sums.emplace_back(value.blocks().size());
  each_block(values, [&](BlockIndex at) {
    sums[at.value][at.block] = f(values[at.value].blocks()[at.block]);
  });
  std::vector<double> results(values.size());
  for (const CutSet& set : cut_sets(values)) {
    const auto count = static_cast<int64_t>(set.members.size());
    const ShardingPtr form = intern({count}, at::kDouble, set.layout);
    Blocks blocks;
    for (const BlockInfo& sum : form->blocks) {
      std::vector<double> totals;
      for (size_t v : set.members) {
        const Sharding& from = *values[v].sharding();
        double total = 0;
        for (size_t b = 0; b < from.blocks.size(); ++b) {
          if (adds_to(from, from.blocks[b], *form, sum)) total += sums[v][b];
        }
        totals.push_back(total);
      }
      blocks.push_back(moved_to(at::tensor(totals, at::kDouble), block_device(form->mesh(), sum)));
    }
    const DTensor whole = relayout_value(DTensor(form, std::move(blocks)), set.layout.resolved());
    if (whole.blocks().empty()) continue;
    const at::Tensor first = whole.blocks()[0].cpu().contiguous();
    for (size_t i = 0; i < set.members.size(); ++i) {
      results[set.members[i]] = first.data_ptr<double>()[i];
    }
  }
  return results;
}

}  // namespace

std::vector<double> squared_norms(const std::vector<DTensor>& values) {
  return sums_of(values, sum_of_squares);
}

bool all_finite(const std::vector<DTensor>& values) {
  const std::vector<double> others = sums_of(values, count_of_others);
  return std::all_of(others.begin(), others.end(), [](double count) { return count == 0; });
}

std::vector<DTensor> scaled(const std::vector<DTensor>& values,
                            const std::vector<double>& factors) {
  return map_blocks(values, [&](size_t v, const at::Tensor& block) {
    return factors[v] == 1 ? block : block.mul(factors[v]);
  });
}

std::vector<DTensor> clip_gradients(const std::vector<DTensor>& gradients,
                                    const BaseOptions& options) {
  const double bound = options.clipnorm.value_or(0);
  const double global = options.global_clipnorm.value_or(0);
  const double value = options.clipvalue.value_or(0);
  if (value > 0) {
    return map_blocks(gradients,
                      [&](size_t, const at::Tensor& block) { return block.clamp(-value, value); });
  }
  if (!(bound > 0) && !(global > 0)) return gradients;
  std::vector<double> factors = squared_norms(gradients);
  if (bound > 0) {
    for (double& factor : factors) {
      const double norm = std::sqrt(factor);
      factor = norm <= bound ? 1 : bound / norm;
    }
    return scaled(gradients, factors);
  }
  double total = 0;
  for (double squared : factors) total += squared;
  const double norm = std::sqrt(total);
  const double scale = norm <= global ? 1 : global / norm;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return scaled(gradients,
                std::vector<double>(gradients.size(), std::isfinite(norm) ? scale : nan));
}

}  // namespace tessera::detail
