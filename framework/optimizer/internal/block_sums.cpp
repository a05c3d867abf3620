#include <tessera/framework/optimizer/internal/block_sums.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <ATen/OpMathType.h>

#include <tessera/framework/mesh/internal/view.hpp>
#include <tessera/framework/optimizer/internal/for_each_block.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

namespace tessera::detail {
namespace {

/// Values that are sharded over the same mesh dimensions.
struct ShardedSet {
  Layout layout;  ///< layout of the vector of their sums: a partial sum over these dimensions
  std::vector<size_t> members;
};

/// The quantity that is summed over each value, block by block.
enum class Sum { squares, not_finite };

double sum_on_host(Sum sum, const at::Tensor& block) {
  if (sum == Sum::not_finite) {
    return static_cast<double>(block.numel() - at::isfinite(block).sum().item<int64_t>());
  }
  // Squares in float16 overflow.
  const bool half = block.element_size() < 4;
  return at::sum(at::square(half ? block.to(at::kFloat) : block)).item<double>();
}

/// The contribution of each block to a sum: a number for CPU blocks, a norm on its GPU for the
/// others.
struct BlockSums {
  std::vector<double> numbers;
  std::vector<at::Tensor> norms;
};

BlockSums block_sums(Sum sum, const std::vector<DTensor>& values) {
  const std::vector<at::Tensor> blocks = blocks_of(values);
  const double order = sum == Sum::squares ? 2 : std::numeric_limits<double>::infinity();
  BlockSums sums{std::vector<double>(blocks.size()), std::vector<at::Tensor>(blocks.size())};
  for_each_list(
      blocks, [&](size_t b) { sums.numbers[b] = sum_on_host(sum, blocks[b]); },
      [&](const std::vector<size_t>& indices) {
        const std::vector<at::Tensor> list = select(blocks, indices);
        const at::ScalarType wide = at::toOpMathType(list[0].scalar_type());
        const std::vector<at::Tensor> norms = at::_foreach_norm(list, order, wide);
        for (size_t i = 0; i < indices.size(); ++i) sums.norms[indices[i]] = norms[i];
      },
      memory_devices_of(values));
  return sums;
}

/// Returns one float64 sum for each list of blocks.
at::Tensor sums_of_numbers(const std::vector<double>& numbers,
                           const std::vector<std::vector<size_t>>& block_lists,
                           const at::TensorOptions& options) {
  at::Tensor sums = at::zeros({static_cast<int64_t>(block_lists.size())}, options);
  double* const sum = sums.mutable_data_ptr<double>();
  for (size_t i = 0; i < block_lists.size(); ++i) {
    for (size_t b : block_lists[i]) sum[i] += numbers[b];
  }
  return sums;
}

/// Like sums_of_numbers(), from norms, on a GPU. Sum::not_finite gives NaN instead of a count.
at::Tensor sums_of_norms(Sum sum, const std::vector<at::Tensor>& norms,
                         const std::vector<std::vector<size_t>>& block_lists,
                         const at::TensorOptions& options) {
  std::vector<at::Tensor> list;
  for (const std::vector<size_t>& blocks : block_lists) {
    std::vector<at::Tensor> terms;
    for (size_t b : blocks) terms.push_back(moved_to(norms[b], options.device()));
    at::Tensor norm = terms.empty() ? at::zeros({}, options) : terms[0];
    if (terms.size() > 1) {
      norm = at::stack(terms);
      norm = sum == Sum::squares ? at::linalg_vector_norm(norm) : norm.amax();
    }
    list.push_back(norm);
  }
  const at::Tensor vector = at::stack(list).to(at::kDouble);
  return sum == Sum::squares ? vector.square() : vector.mul(0);
}

/// Returns the mesh dimensions of more than one device over which a value is sharded.
DimMask split_dims(const Layout& layout) {
  DimMask dims = layout.sharded_dims();
  for (int d = 0; d < layout.mesh().rank(); ++d) {
    if (layout.mesh().dim_size(d) == 1) dims &= ~(DimMask{1} << d);
  }
  return dims;
}

std::vector<ShardedSet> sharded_sets(const std::vector<DTensor>& values) {
  std::vector<ShardedSet> sets;
  for (size_t v = 0; v < values.size(); ++v) {
    Layout layout = Layout::replicated(values[v].mesh(), 1);
    const DimMask dims = split_dims(values[v].layout());
    if (dims) layout = layout.with_partial(dims, Reduce::sum);
    const auto match = std::find_if(sets.begin(), sets.end(),
                                    [&](const ShardedSet& set) { return set.layout == layout; });
    if (match == sets.end()) {
      sets.push_back({layout, {v}});
    } else {
      match->members.push_back(v);
    }
  }
  return sets;
}

/// Returns this process's coordinates along mesh dimension `d` that hold the block.
Interval coordinates(const Sharding& sharding, const BlockInfo& block, size_t d) {
  const int64_t size = sharding.mesh().dim_size(static_cast<int>(d));
  return intersect(group_range(size, sharding.groups[d], block.group[d]),
                   sharding.mesh().local_box()[d]);
}

/// Whether a value's block contributes to a block of its set's sums. Along dimensions over which
/// the value is sharded, a block contributes to exactly one block of sums; along the others, each
/// block of sums takes one replica.
bool adds_to(const Sharding& from, const BlockInfo& block, const Sharding& sums,
             const BlockInfo& sum) {
  for (size_t d = 0; d < block.group.size(); ++d) {
    const Interval have = coordinates(from, block, d), want = coordinates(sums, sum, d);
    const bool sharded = sums.layout.partial_dims() >> d & 1;
    const Interval range = sharded ? want : have;
    const int64_t first = sharded ? have.lo : want.lo;
    if (first < range.lo || first >= range.hi) return false;
  }
  return true;
}

/// Returns, for each member of a set, the indices in blocks_of(values) of the blocks that
/// contribute to block `sum` of the sums. `first` holds the index of each value's first block.
std::vector<std::vector<size_t>> contributing_blocks(const ShardedSet& set,
                                                     const std::vector<DTensor>& values,
                                                     const std::vector<size_t>& first,
                                                     const Sharding& sums, const BlockInfo& sum) {
  std::vector<std::vector<size_t>> lists;
  for (size_t v : set.members) {
    const Sharding& from = *values[v].sharding();
    lists.emplace_back();
    for (size_t b = 0; b < from.blocks.size(); ++b) {
      if (adds_to(from, from.blocks[b], sums, sum)) lists.back().push_back(first[v] + b);
    }
  }
  return lists;
}

/// Returns one sum per value. Collective; reads nothing from GPUs.
std::vector<ValueSet> sums_of(const std::vector<DTensor>& values, Sum sum) {
  const BlockSums terms = block_sums(sum, values);
  std::vector<size_t> first = {0};
  for (const DTensor& value : values) first.push_back(first.back() + value.blocks().size());
  std::vector<ValueSet> results;
  for (const ShardedSet& set : sharded_sets(values)) {
    const auto count = static_cast<int64_t>(set.members.size());
    const ShardingPtr sharding = intern({count}, at::kDouble, set.layout);
    Blocks totals;
    for (const BlockInfo& info : sharding->blocks) {
      const auto block_lists = contributing_blocks(set, values, first, *sharding, info);
      const at::TensorOptions options = block_options(*sharding, info);
      totals.push_back(options.device().is_cpu()
                           ? sums_of_numbers(terms.numbers, block_lists, options)
                           : sums_of_norms(sum, terms.norms, block_lists, options));
    }
    results.push_back(
        {set.members, relayout_value(DTensor(sharding, std::move(totals)), set.layout.resolved())});
  }
  return results;
}

/// Returns sets with the same total, which every process has: what views have becomes one number on
/// the whole mesh. Collective.
std::vector<ValueSet> on_the_whole_mesh(const std::vector<ValueSet>& sets) {
  const auto is_of_view = [](const ValueSet& set) { return set.numbers.mesh().is_view(); };
  if (std::none_of(sets.begin(), sets.end(), is_of_view)) return sets;
  const Mesh all = sets[0].numbers.mesh().root();
  const Layout replicated = Layout::replicated(all, 1);
  const DimMask dims = (DimMask{1} << all.rank()) - 1;
  const ShardingPtr sharding = intern({1}, at::kDouble, replicated.with_partial(dims, Reduce::sum));
  Blocks totals;
  for (const BlockInfo& block : sharding->blocks) {
    totals.push_back(at::zeros({1}, block_options(*sharding, block)));
  }
  ValueSet joined;
  for (const ValueSet& set : sets) {
    joined.members.insert(joined.members.end(), set.members.begin(), set.members.end());
    // Replicated on its mesh, so that the first device stands for all.
    const std::vector<int64_t> first = all.coordinates(device_ids(set.numbers.mesh()).front());
    const int from = set.numbers.sharding()->block_of(first), to = sharding->block_of(first);
    if (from < 0 || to < 0) continue;
    at::Tensor& total = totals[static_cast<size_t>(to)];
    const at::Tensor sum = set.numbers.blocks()[static_cast<size_t>(from)].sum();
    total.add_(moved_to(sum, total.device()));
  }
  joined.numbers = relayout_value(DTensor(sharding, std::move(totals)), replicated);
  return {joined};
}

}  // namespace

std::vector<ValueSet> squared_norms(const std::vector<DTensor>& values) {
  return sums_of(values, Sum::squares);
}

at::Tensor total_of(const std::vector<ValueSet>& sets, c10::Device device) {
  at::Tensor total;
  for (const ValueSet& set : sets) {
    const Blocks& blocks = set.numbers.blocks();
    if (blocks.empty()) continue;
    const auto match = std::find_if(blocks.begin(), blocks.end(),
                                    [device](const at::Tensor& b) { return b.device() == device; });
    const at::Tensor sum = moved_to((match == blocks.end() ? blocks[0] : *match).sum(), device);
    total = total.defined() ? total + sum : sum;
  }
  return total;
}

std::vector<ValueSet> squared_norms_together(const std::vector<DTensor>& values) {
  return on_the_whole_mesh(sums_of(values, Sum::squares));
}

void subtract_scaled(const std::vector<DTensor>& values, const std::vector<DTensor>& steps,
                     const std::function<at::Tensor(const StepNorms& norms)>& factors) {
  std::vector<DTensor> both = values;
  both.insert(both.end(), steps.begin(), steps.end());
  ValueNumbers numbers(values.size());
  for (const ValueSet& set : squared_norms(both)) {
    // A value and its step are in the same set, since their shardings are equal; values come first.
    const size_t count = set.members.size() / 2;
    const std::vector<size_t> members(set.members.begin(), set.members.begin() + count);
    numbers.add(members, on_each_device(set, [&](const at::Tensor& squares) {
                  const std::vector<at::Tensor> halves = squares.chunk(2);
                  return factors({members, halves[0], halves[1]});
                }));
  }
  const std::vector<at::Tensor> blocks = blocks_of(values), changes = blocks_of(steps);
  const std::vector<size_t> owners = owners_of(values);
  for_each_block(blocks, [&](size_t b) {
    const size_t v = owners[b];
    if (blocks[b].is_cpu()) {
      blocks[b].sub_(changes[b], numbers.on_host(v));
    } else {
      blocks[b].addcmul_(changes[b], numbers.on_gpu(v, blocks[b].device()), -1);
    }
  });
}

bool all_finite(const std::vector<DTensor>& values) {
  const std::vector<ValueSet> sets = on_the_whole_mesh(sums_of(values, Sum::not_finite));
  return std::none_of(sets.begin(), sets.end(), [](const ValueSet& set) {
    const Blocks& counts = set.numbers.blocks();
    return !counts.empty() && counts[0].any().item<bool>();
  });
}

ScalarOnDevices non_finite_on_gpus(const std::vector<DTensor>& values, const Blocks& blocks) {
  const std::vector<ValueSet> sets = on_the_whole_mesh(sums_of(values, Sum::not_finite));
  ScalarOnDevices flags;
  for (const at::Tensor& block : blocks) {
    at::Tensor& flag = flags[block.device()];
    if (!flag.defined()) flag = total_of(sets, block.device()).ne(0).to(at::kFloat);
  }
  return flags;
}

}  // namespace tessera::detail
