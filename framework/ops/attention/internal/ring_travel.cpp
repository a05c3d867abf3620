#include <tessera/framework/ops/attention/internal/ring_travel.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/tensor/internal/halo_exchange.hpp>

namespace tessera::detail {
namespace {

/// Axis of steps in (n, heads, steps, features).
constexpr int64_t step_axis = 2;

PackedSpec packed_spec(const at::Tensor& tensor, int64_t steps) {
  PackedSpec spec{tensor.sizes().vec(), tensor.scalar_type()};
  spec.shape[step_axis] = steps;
  return spec;
}

/// Concatenates two runs of steps, with steps before heads in memory, as in an operation's output.
at::Tensor joined(const at::Tensor& first, const at::Tensor& second) {
  if (first.dim() != 4) return at::cat({first, second}, step_axis);
  const int64_t half = first.size(step_axis), rest = second.size(step_axis);
  const at::Tensor all =
      at::empty({first.size(0), half + rest, first.size(1), first.size(3)}, first.options())
          .transpose(1, step_axis);
  all.narrow(step_axis, 0, half).copy_(first);
  all.narrow(step_axis, half, rest).copy_(second);
  return all;
}

/// Returns whether any member swaps steps.
bool swaps(const RingSchedule& schedule) {
  for (int64_t m = 0; m < schedule.members(); ++m) {
    if (!schedule.sent_half(m).empty()) return true;
  }
  return false;
}

std::vector<Interval> shard_intervals(int64_t steps, int64_t shards) {
  std::vector<Interval> intervals;
  for (int64_t i = 0; i < shards; ++i) intervals.push_back(shard_interval(steps, shards, i));
  return intervals;
}

/// Keys and values visit every member if a fully masked step may need the mean of all values.
RingOptions ring_options(const AttentionTerms& terms, bool zigzag, const BlockGrid& grid,
                         size_t first) {
  return {.causal = terms.causal,
          .window = terms.reach,
          .zigzag = zigzag,
          .visit_all = !terms.zeros && grid.specs.size() > first};
}

}  // namespace

RingTravel::RingTravel(const AttentionTerms& terms, bool zigzag, const BlockGrid& grid,
                       size_t first_mask)
    : grid_(grid),
      first_mask_(first_mask),
      axis_(AttentionTerms::steps_axis(grid.specs)),
      steps_(grid.specs[0].shape[size_t(axis_)]),
      dtype_(grid.specs[0].dtype),
      wide_(at::toOpMathType(dtype_)),
      members_(group_intervals(grid.layouts[0], axis_, steps_, grid.groups),
               ring_options(terms, zigzag, grid, first_mask)),
      shards_(shard_intervals(steps_, grid.layouts[0].num_shards(axis_)),
              ring_options(terms, zigzag, grid, first_mask)),
      group_(grid.layouts[0].mesh(), grid.layouts[0].axis(axis_), grid.groups, grid.block_groups,
             grid.specs[0].shape, dtype_) {}

/// Splits each block's tensors into runs: a member gets the first half of its own steps and the
/// second half of its partner's.
std::vector<RingTravel::Values> RingTravel::split_runs(
    const std::vector<std::vector<at::Tensor>>& tensors) const {
  std::vector<Values> runs(blocks());
  if (!swaps(members_)) {
    for (size_t b = 0; b < blocks(); ++b) {
      for (const at::Tensor& tensor : tensors[b]) runs[b].push_back({tensor});
    }
    return runs;
  }
  std::vector<at::Tensor> sent(blocks());
  std::vector<std::vector<PackedSpec>> received_specs(blocks());
  std::vector<int64_t> partners, bytes;
  for (int64_t m = 0; m < members_.members(); ++m) partners.push_back(members_.partner(m));
  for (size_t b = 0; b < blocks(); ++b) {
    const int64_t incoming = members_.sent_half(members_.partner(member(b))).size();
    for (const at::Tensor& tensor : tensors[b]) {
      received_specs[b].push_back(packed_spec(tensor, incoming));
    }
    bytes.push_back(packed_bytes(received_specs[b]));
  }
  each([&](size_t b) {
    const int64_t outgoing = members_.sent_half(member(b)).size();
    std::vector<at::Tensor> halves;
    for (const at::Tensor& tensor : tensors[b]) {
      halves.push_back(tensor.narrow(step_axis, tensor.size(step_axis) - outgoing, outgoing));
    }
    sent[b] = packed(halves);
  });
  const std::vector<at::Tensor> received = group_.start(partners, std::move(sent), bytes).wait();
  for (size_t b = 0; b < blocks(); ++b) {
    const bool stays = members_.runs(member(b)).size() == 1;
    const std::vector<at::Tensor> halves = unpacked(received[b], received_specs[b]);
    const int64_t outgoing = members_.sent_half(member(b)).size();
    for (size_t i = 0; i < tensors[b].size(); ++i) {
      const at::Tensor& tensor = tensors[b][i];
      const at::Tensor first = tensor.narrow(step_axis, 0, tensor.size(step_axis) - outgoing);
      runs[b].push_back(stays ? Runs{tensor} : Runs{first, halves[i]});
    }
  }
  return runs;
}

/// Joins runs into blocks: inverts split_runs().
std::vector<std::vector<at::Tensor>> RingTravel::join_runs(
    const std::vector<Values>& values) const {
  std::vector<std::vector<at::Tensor>> tensors(blocks());
  if (!swaps(members_)) {
    for (size_t b = 0; b < blocks(); ++b) {
      for (const Runs& runs : values[b]) tensors[b].push_back(runs[0]);
    }
    return tensors;
  }
  std::vector<at::Tensor> sent(blocks());
  std::vector<std::vector<PackedSpec>> received_specs(blocks());
  std::vector<int64_t> partners, bytes;
  for (int64_t m = 0; m < members_.members(); ++m) partners.push_back(members_.partner(m));
  for (size_t b = 0; b < blocks(); ++b) {
    const int64_t incoming = members_.sent_half(member(b)).size();
    for (const Runs& runs : values[b]) received_specs[b].push_back(packed_spec(runs[0], incoming));
    bytes.push_back(packed_bytes(received_specs[b]));
  }
  each([&](size_t b) {
    std::vector<at::Tensor> halves;
    for (const Runs& runs : values[b]) {
      halves.push_back(runs.size() == 1 ? runs[0].narrow(step_axis, 0, 0) : runs[1]);
    }
    sent[b] = packed(halves);
  });
  const std::vector<at::Tensor> received = group_.start(partners, std::move(sent), bytes).wait();
  each([&](size_t b) {
    const std::vector<at::Tensor> halves = unpacked(received[b], received_specs[b]);
    for (size_t i = 0; i < values[b].size(); ++i) {
      const Runs& runs = values[b][i];
      tensors[b].push_back(runs.size() == 1 ? runs[0] : joined(runs[0], halves[i]));
    }
  });
  return tensors;
}

/// Splits the inputs into runs. `more`: each block's output, log-sum-exp and output gradient, or
/// none.
void RingTravel::split_inputs(std::vector<std::vector<at::Tensor>> more) {
  std::vector<std::vector<at::Tensor>> tensors(blocks());
  std::vector<std::vector<at::Tensor>> masks(blocks());
  std::vector<std::vector<bool>> by_steps(blocks());
  for (size_t b = 0; b < blocks(); ++b) {
    const LocalArgs& in = grid_.blocks[b];
    for (size_t i = 0; i < 3; ++i) tensors[b].push_back(heads_first(in[i]));
    for (at::Tensor& each : more[b]) tensors[b].push_back(std::move(each));
    masks[b] = AttentionTerms::masks_of(in, first_mask_);
    for (size_t i = 0; i < masks[b].size(); ++i) {
      const Shape& shape = in.spec(first_mask_ + i).shape;
      by_steps[b].push_back(masks[b][i].dim() == 4 && in.spec(first_mask_ + i).dtype != at::kLong &&
                            shape[shape.size() - 2] > 1);
      if (by_steps[b].back()) tensors[b].push_back(masks[b][i]);
    }
  }
  std::vector<Values> runs = split_runs(tensors);
  for (size_t b = 0; b < blocks(); ++b) {
    size_t next = 3 + more[b].size();
    q_.push_back(runs[b][0]);
    own_.keys.push_back(runs[b][1]);
    own_.values.push_back(runs[b][2]);
    if (more[b].size() == 3) {
      y_.push_back(runs[b][3]);
      lse_.push_back(runs[b][4]);
      dy_.push_back(runs[b][5]);
    }
    masks_.emplace_back();
    for (size_t i = 0; i < masks[b].size(); ++i) {
      masks_[b].push_back(by_steps[b][i] ? runs[b][next++] : Runs{masks[b][i]});
    }
  }
}

/// Returns the shapes and dtypes of the keys and values, or their gradients, of member `source` in
/// this block's ring.
std::vector<PackedSpec> RingTravel::packed_specs(size_t block, int64_t source,
                                                 at::ScalarType dtype) const {
  std::vector<PackedSpec> list;
  for (const Values* values : {&own_.keys, &own_.values}) {
    for (Interval run : members_.runs(source)) {
      list.push_back(packed_spec((*values)[block][0], std::max<int64_t>(0, run.size())));
      list.back().dtype = dtype;
    }
  }
  return list;
}

std::vector<at::Tensor> RingTravel::packs(const KeyValues& key_values) const {
  std::vector<at::Tensor> list(blocks());
  each([&](size_t b) {
    std::vector<at::Tensor> all = key_values.keys[b];
    all.insert(all.end(), key_values.values[b].begin(), key_values.values[b].end());
    list[b] = packed(all);
  });
  return list;
}

/// Unpacks the keys and values, or their gradients, that blocks hold after `hop` hops.
RingTravel::KeyValues RingTravel::unpacked_at(const std::vector<at::Tensor>& packs, int64_t hop,
                                              at::ScalarType dtype) const {
  KeyValues key_values;
  for (size_t b = 0; b < blocks(); ++b) {
    const Runs all = unpacked(packs[b], packed_specs(b, members_.source(member(b), hop), dtype));
    const auto half = all.begin() + std::ssize(all) / 2;
    key_values.keys.emplace_back(all.begin(), half);
    key_values.values.emplace_back(half, all.end());
  }
  return key_values;
}

/// Starts sending each member's packed data `members` members ahead. A member then holds the data
/// of its source after `hop` hops.
PermuteGroup::Transfer RingTravel::rotate(const std::vector<at::Tensor>& packs, int64_t members,
                                          int64_t hop, at::ScalarType dtype) const {
  std::vector<int64_t> from, bytes;
  const int64_t n = members_.members();
  for (int64_t m = 0; m < n; ++m) from.push_back(((m - members) % n + n) % n);
  for (size_t b = 0; b < blocks(); ++b) {
    bytes.push_back(packed_bytes(packed_specs(b, members_.source(member(b), hop), dtype)));
  }
  return group_.start(from, packs, bytes);
}

/// Logs the transfers, with the bytes of the device that holds the most steps. Counts by the
/// mesh's shards, so that logs do not depend on how shards are merged into blocks.
void RingTravel::log(bool backward) const {
  const Specs& in = grid_.specs;
  const Layout& layout = grid_.layouts[0];
  const auto shard = [](int64_t extent, int64_t shards) {
    return double((extent + shards - 1) / shards);
  };
  double rows = 1, max_steps = 0, max_half = 0, masks = 0;
  for (int64_t a = 0; a < axis_; ++a) rows *= shard(in[0].shape[size_t(a)], layout.num_shards(a));
  const int64_t heads = in[0].shape[size_t(axis_) + 1], head_shards = layout.num_shards(axis_ + 1);
  int64_t shared = 0;
  for (int64_t i = 0; i < head_shards; ++i) {
    const Interval own = shard_interval(heads, head_shards, i);
    if (own.empty()) continue;
    shared = std::max(shared, shared_heads(own, AttentionTerms::group(in)).size());
  }
  const double size = double(c10::elementSize(dtype_)), wide = double(c10::elementSize(wide_)),
               dim = double(in[0].shape.back()),
               width = shard(in[2].shape.back(), grid_.layouts[2].num_shards(axis_ + 2)),
               key_value_size = rows * double(shared) * (dim + width);
  rows *= shard(heads, head_shards);
  for (int64_t m = 0; m < shards_.members(); ++m) {
    int64_t steps = 0;
    for (Interval run : shards_.runs(m)) steps += run.size();
    max_steps = std::max(max_steps, double(steps));
    max_half = std::max(max_half, double(shards_.sent_half(m).size()));
  }
  for (size_t i = first_mask_; i < in.size(); ++i) {
    const int64_t steps = in[i].rank() - 2;
    if (in[i].dtype == at::kLong || in[i].shape[size_t(steps)] == 1) continue;
    Shape shape = in[i].shape;
    shape.erase(shape.begin() + steps);
    masks += shard_bytes(shape, in[i].dtype, grid_.layouts[i].remove({steps}));
  }
  const auto add = [&](double bytes) { log_permute(layout.mesh(), layout.axis(axis_), bytes); };
  const double results = rows * ((backward ? 2 : 0) * width * size + (backward ? wide : 0));
  add(max_half * (rows * dim * size + key_value_size * size + results + masks));
  for (int64_t hop = 0; hop < shards_.hops(); ++hop) {
    add(max_steps * key_value_size * size);
    if (backward) add(max_steps * key_value_size * wide);
  }
  if (backward && shards_.hops() > 0) add(max_steps * key_value_size * wide);
  add(max_half * (backward ? (rows * dim + key_value_size) * size : rows * (width * size + wide)));
}

}  // namespace tessera::detail
