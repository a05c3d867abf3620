#include <tessera/framework/ops/attention/internal/ring_run.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

/// What travels between the members of a ring, and what of it is logged.
namespace tessera::detail {
namespace {

/// Steps lie along it in (n, heads, steps, features).
constexpr int64_t steps_at = 2;

PackedPart packed_form(const at::Tensor& tensor, int64_t steps) {
  PackedPart part{tensor.sizes().vec(), tensor.scalar_type()};
  part.shape[steps_at] = steps;
  return part;
}

/// Two runs of steps as one, in memory as operations give it.
at::Tensor joined(const at::Tensor& first, const at::Tensor& second) {
  if (first.dim() != 4) return at::cat({first, second}, steps_at);
  const int64_t half = first.size(steps_at), rest = second.size(steps_at);
  const at::Tensor all =
      at::empty({first.size(0), half + rest, first.size(1), first.size(3)}, first.options())
          .transpose(1, steps_at);
  all.narrow(steps_at, 0, half).copy_(first);
  all.narrow(steps_at, half, rest).copy_(second);
  return all;
}

/// Steps that a member swaps.
bool swaps(const RingSchedule& schedule) {
  for (int64_t m = 0; m < schedule.members(); ++m) {
    if (!schedule.given(m).empty()) return true;
  }
  return false;
}

}  // namespace

/// For each block its tensors, of which members have the first half of their own and their
/// partner's second.
std::vector<RingRun::Values> RingRun::spread(
    const std::vector<std::vector<at::Tensor>>& tensors) const {
  std::vector<Values> runs(blocks());
  if (!swaps(members_)) {
    for (size_t b = 0; b < blocks(); ++b) {
      for (const at::Tensor& tensor : tensors[b]) runs[b].push_back({tensor});
    }
    return runs;
  }
  std::vector<at::Tensor> sent(blocks());
  std::vector<std::vector<PackedPart>> forms(blocks());
  std::vector<int64_t> partners, bytes;
  for (int64_t m = 0; m < members_.members(); ++m) partners.push_back(members_.partner(m));
  for (size_t b = 0; b < blocks(); ++b) {
    const int64_t come = members_.given(members_.partner(member(b))).size();
    for (const at::Tensor& tensor : tensors[b]) forms[b].push_back(packed_form(tensor, come));
    bytes.push_back(packed_bytes(forms[b]));
  }
  each([&](size_t b) {
    const int64_t go = members_.given(member(b)).size();
    std::vector<at::Tensor> halves;
    for (const at::Tensor& tensor : tensors[b]) {
      halves.push_back(tensor.narrow(steps_at, tensor.size(steps_at) - go, go));
    }
    sent[b] = packed(halves);
  });
  const std::vector<at::Tensor> got = group_.start(partners, std::move(sent), bytes).wait();
  for (size_t b = 0; b < blocks(); ++b) {
    const bool stays = members_.runs(member(b)).size() == 1;
    const std::vector<at::Tensor> halves = unpacked(got[b], forms[b]);
    const int64_t go = members_.given(member(b)).size();
    for (size_t i = 0; i < tensors[b].size(); ++i) {
      const at::Tensor& tensor = tensors[b][i];
      const at::Tensor first = tensor.narrow(steps_at, 0, tensor.size(steps_at) - go);
      runs[b].push_back(stays ? Runs{tensor} : Runs{first, halves[i]});
    }
  }
  return runs;
}

/// The way back.
std::vector<std::vector<at::Tensor>> RingRun::collect(const std::vector<Values>& values) const {
  std::vector<std::vector<at::Tensor>> tensors(blocks());
  if (!swaps(members_)) {
    for (size_t b = 0; b < blocks(); ++b) {
      for (const Runs& runs : values[b]) tensors[b].push_back(runs[0]);
    }
    return tensors;
  }
  std::vector<at::Tensor> sent(blocks());
  std::vector<std::vector<PackedPart>> forms(blocks());
  std::vector<int64_t> partners, bytes;
  for (int64_t m = 0; m < members_.members(); ++m) partners.push_back(members_.partner(m));
  for (size_t b = 0; b < blocks(); ++b) {
    const int64_t come = members_.given(member(b)).size();
    for (const Runs& runs : values[b]) forms[b].push_back(packed_form(runs[0], come));
    bytes.push_back(packed_bytes(forms[b]));
  }
  each([&](size_t b) {
    std::vector<at::Tensor> halves;
    for (const Runs& runs : values[b]) {
      halves.push_back(runs.size() == 1 ? runs[0].narrow(steps_at, 0, 0) : runs[1]);
    }
    sent[b] = packed(halves);
  });
  const std::vector<at::Tensor> got = group_.start(partners, std::move(sent), bytes).wait();
  each([&](size_t b) {
    const std::vector<at::Tensor> halves = unpacked(got[b], forms[b]);
    for (size_t i = 0; i < values[b].size(); ++i) {
      const Runs& runs = values[b][i];
      tensors[b].push_back(runs.size() == 1 ? runs[0] : joined(runs[0], halves[i]));
    }
  });
  return tensors;
}

/// The inputs by runs; `more` of each block are the result, the sums and the result's gradient.
void RingRun::bring(std::vector<std::vector<at::Tensor>> more) {
  std::vector<std::vector<at::Tensor>> tensors(blocks());
  std::vector<std::vector<at::Tensor>> masks(blocks());
  std::vector<std::vector<bool>> cut(blocks());
  for (size_t b = 0; b < blocks(); ++b) {
    const LocalArgs& in = grid_.blocks[b];
    for (size_t i = 0; i < 3; ++i) tensors[b].push_back(heads_first(in[i]));
    for (at::Tensor& each : more[b]) tensors[b].push_back(std::move(each));
    masks[b] = AttentionTerms::masks_of(in, first_mask_);
    for (size_t i = 0; i < masks[b].size(); ++i) {
      const Shape& shape = in.spec(first_mask_ + i).shape;
      cut[b].push_back(masks[b][i].dim() == 4 && in.spec(first_mask_ + i).dtype != at::kLong &&
                       shape[shape.size() - 2] > 1);
      if (cut[b].back()) tensors[b].push_back(masks[b][i]);
    }
  }
  std::vector<Values> runs = spread(tensors);
  for (size_t b = 0; b < blocks(); ++b) {
    size_t next = 3 + more[b].size();
    q_.push_back(runs[b][0]);
    own_.keys.push_back(runs[b][1]);
    own_.values.push_back(runs[b][2]);
    if (more[b].size() == 3) {
      y_.push_back(runs[b][3]);
      sums_.push_back(runs[b][4]);
      dy_.push_back(runs[b][5]);
    }
    masks_.emplace_back();
    for (size_t i = 0; i < masks[b].size(); ++i) {
      masks_[b].push_back(cut[b][i] ? runs[b][next++] : Runs{masks[b][i]});
    }
  }
}

/// Keys and values, or their gradients, of a member, as this block's row of the ring has them.
std::vector<PackedPart> RingRun::forms(size_t block, int64_t source, at::ScalarType dtype) const {
  std::vector<PackedPart> list;
  for (const Values* values : {&own_.keys, &own_.values}) {
    for (Interval run : members_.runs(source)) {
      list.push_back(packed_form((*values)[block][0], std::max<int64_t>(0, run.size())));
      list.back().dtype = dtype;
    }
  }
  return list;
}

std::vector<at::Tensor> RingRun::packs(const Pairs& pairs) const {
  std::vector<at::Tensor> list(blocks());
  each([&](size_t b) {
    std::vector<at::Tensor> all = pairs.keys[b];
    all.insert(all.end(), pairs.values[b].begin(), pairs.values[b].end());
    list[b] = packed(all);
  });
  return list;
}

/// What blocks have after some hops.
RingRun::Pairs RingRun::unpacked_at(const std::vector<at::Tensor>& packs, int64_t hop,
                                    at::ScalarType dtype) const {
  Pairs pairs;
  for (size_t b = 0; b < blocks(); ++b) {
    const Runs all = unpacked(packs[b], forms(b, members_.source(member(b), hop), dtype));
    const auto half = all.begin() + std::ssize(all) / 2;
    pairs.keys.emplace_back(all.begin(), half);
    pairs.values.emplace_back(half, all.end());
  }
  return pairs;
}

/// Begins to hand what each member has to the one that comes `members` behind it, which then has
/// what `hop` hops give it.
PermuteGroup::Transfer RingRun::pass_on(const std::vector<at::Tensor>& packs, int64_t members,
                                        int64_t hop, at::ScalarType dtype) const {
  std::vector<int64_t> from, bytes;
  const int64_t n = members_.members();
  for (int64_t m = 0; m < n; ++m) from.push_back(((m - members) % n + n) % n);
  for (size_t b = 0; b < blocks(); ++b) {
    bytes.push_back(packed_bytes(forms(b, members_.source(member(b), hop), dtype)));
  }
  return group_.start(from, packs, bytes);
}

/// Bytes are those of the device that has most, by the shards of the mesh: they do not depend on
/// how blocks merge.
void RingRun::log(bool backward) const {
  const Specs& in = grid_.specs;
  const Layout& layout = grid_.layouts[0];
  const auto shard = [](int64_t extent, int64_t shards) {
    return double((extent + shards - 1) / shards);
  };
  double rows = 1, most = 0, half = 0, masks = 0;
  for (int64_t a = 0; a < axis_; ++a) rows *= shard(in[0].shape[size_t(a)], layout.num_shards(a));
  const int64_t heads = in[0].shape[size_t(axis_) + 1], cut = layout.num_shards(axis_ + 1);
  int64_t shared = 0;
  for (int64_t i = 0; i < cut; ++i) {
    const Interval own = shard_interval(heads, cut, i);
    if (own.empty()) continue;
    shared = std::max(shared, shared_heads(own, AttentionTerms::group(in)).size());
  }
  const double size = double(c10::elementSize(dtype_)), wide = double(c10::elementSize(wide_)),
               dim = double(in[0].shape.back()),
               width = shard(in[2].shape.back(), grid_.layouts[2].num_shards(axis_ + 2)),
               pair = rows * double(shared) * (dim + width);
  rows *= shard(heads, cut);
  for (int64_t m = 0; m < shards_.members(); ++m) {
    int64_t steps = 0;
    for (Interval run : shards_.runs(m)) steps += run.size();
    most = std::max(most, double(steps));
    half = std::max(half, double(shards_.given(m).size()));
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
  add(half * (rows * dim * size + pair * size + results + masks));
  for (int64_t hop = 0; hop < shards_.hops(); ++hop) {
    add(most * pair * size);
    if (backward) add(most * pair * wide);
  }
  if (backward && shards_.hops() > 0) add(most * pair * wide);
  add(half * (backward ? (rows * dim + pair) * size : rows * (width * size + wide)));
}

}  // namespace tessera::detail
