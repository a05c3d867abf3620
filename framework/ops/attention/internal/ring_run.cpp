#include <tessera/framework/ops/attention/internal/ring_run.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/tensor/internal/halo_exchange.hpp>

namespace tessera::detail {
namespace {

constexpr double no_sum = -std::numeric_limits<double>::infinity();

std::vector<Interval> shard_parts(int64_t steps, int64_t shards) {
  std::vector<Interval> parts;
  for (int64_t i = 0; i < shards; ++i) parts.push_back(shard_interval(steps, shards, i));
  return parts;
}

bool any_masks(const BlockGrid& grid, size_t first) { return grid.specs.size() > first; }

/// Rows that attend to nothing anywhere give what all values are.
RingForm ring_form(const AttentionTerms& terms, bool zigzag, const BlockGrid& grid, size_t first) {
  return {.causal = terms.causal,
          .window = terms.reach,
          .zigzag = zigzag,
          .every = !terms.zeros && any_masks(grid, first)};
}

/// Adds the part of some keys to the result of others: (n, heads, steps, width), by the logarithms
/// of their sums, in place.
void merge(at::Tensor& y, at::Tensor& sums, AttentionResult part) {
  if (!y.defined()) {
    y = part.first.to(part.second.scalar_type());
    sums = part.second;
    return;
  }
  const at::Tensor all = at::logaddexp(sums, part.second), none = all.eq(no_sum);
  const auto share = [&](const at::Tensor& one) {
    return at::sub(one, all).exp_().masked_fill_(none, 0).unsqueeze(-1);
  };
  y.mul_(share(sums)).addcmul_(part.first.to(y.scalar_type()), share(part.second));
  sums = all;
}

}  // namespace

RingRun::RingRun(const AttentionTerms& terms, bool zigzag, const BlockGrid& grid, size_t first_mask)
    : terms_(terms),
      grid_(grid),
      first_mask_(first_mask),
      axis_(AttentionTerms::steps_axis(grid.specs)),
      steps_(grid.specs[0].shape[size_t(axis_)]),
      dtype_(grid.specs[0].dtype),
      wide_(at::toOpMathType(dtype_)),
      shards_(shard_parts(steps_, grid.layouts[0].num_shards(axis_)),
              ring_form(terms, zigzag, grid, first_mask)),
      members_(group_intervals(grid.layouts[0], axis_, steps_, grid.groups),
               ring_form(terms, zigzag, grid, first_mask)),
      group_(grid.layouts[0].mesh(), grid.layouts[0].axis(axis_), grid.groups, grid.places,
             grid.specs[0].shape, dtype_) {}

bool RingRun::gives_means() const { return !terms_.zeros && any_masks(grid_, first_mask_); }

/// Whether a block has nothing beside steps.
bool RingRun::idle(size_t block) const {
  const at::Tensor &q = q_[block][0], &v = own_.values[block][0];
  return q.size(0) == 0 || q.size(1) == 0 || q.size(3) == 0 || v.size(1) == 0 || v.size(3) == 0;
}

/// What some steps of a block's are of attention to some keys.
AttentionPart RingRun::part_of(size_t block, size_t run, Interval rows, Interval keys) const {
  AttentionPart part = terms_.part_of(grid_.blocks[block]);
  part.first = rows.lo - keys.lo;
  part.partial = true;
  for (const Runs& runs : masks_[block]) {
    const at::Tensor& mask = runs.size() == 1 ? runs[0] : runs[run];
    part.masks.push_back(mask.size(3) == 1 ? mask : mask.narrow(3, keys.lo, keys.size()));
  }
  return part;
}

LocalAttention RingRun::local(size_t block, int64_t hop, RingSchedule::Pair pair,
                              const Pairs& at) const {
  const Interval rows = members_.runs(member(block))[pair.rows],
                 keys = members_.runs(members_.source(member(block), hop))[pair.keys];
  return {q_[block][pair.rows], at.keys[block][pair.keys], at.values[block][pair.keys],
          part_of(block, pair.rows, rows, keys)};
}

// Heads that several of the query share.

/// Heads of the block's query that read one of its shared heads.
Interval RingRun::heads_of(size_t block, int64_t shared) const {
  const AttentionPart part = terms_.part_of(grid_.blocks[block]);
  const int64_t first = (part.shared_heads.lo + shared) * part.group;
  const Interval own = intersect({first, first + part.group}, part.heads);
  // A block without heads may still have a shared one, in the midst of which it lies.
  if (own.empty()) return {0, 0};
  return {own.lo - part.heads.lo, own.hi - part.heads.lo};
}

/// Sums over the heads that share one.
at::Tensor RingRun::by_shared_head(size_t block, const at::Tensor& x) const {
  if (AttentionTerms::group(grid_.specs) == 1) return x;
  const int64_t shared = own_.keys[block][0].size(1);
  const at::Tensor all =
      at::empty({x.size(0), shared, x.size(2), x.size(3)}, x.options().dtype(wide_));
  for (int64_t head = 0; head < shared; ++head) {
    const Interval own = heads_of(block, head);
    all.select(1, head).copy_(x.narrow(1, own.lo, own.size()).sum(1, false, wide_));
  }
  return all;
}

/// What belongs to shared heads for each head of the query: to all that share one, or to the first
/// of them, and 0 to others.
at::Tensor RingRun::by_head(size_t block, const at::Tensor& x, bool all) const {
  if (AttentionTerms::group(grid_.specs) == 1) return x;
  const at::Tensor heads =
      at::zeros({x.size(0), x.size(2), q_[block][0].size(1), x.size(3)}, x.options())
          .transpose(1, 2);
  for (int64_t head = 0; head < x.size(1); ++head) {
    const Interval own = heads_of(block, head);
    const int64_t count = all ? own.size() : std::min<int64_t>(own.size(), 1);
    heads.narrow(1, own.lo, count).copy_(x.narrow(1, head, 1));
  }
  return heads;
}

/// Fills in what no key gave anything to; `total` are the sums of all values.
void RingRun::finish(size_t block, Values& y, Values& sums, const at::Tensor& total) const {
  const std::vector<Interval>& runs = members_.runs(member(block));
  const at::Tensor &q = q_[block][0], &v = own_.values[block][0];
  for (size_t r = 0; r < runs.size(); ++r) {
    at::Tensor &own = y[block][r], &own_sums = sums[block][r];
    if (!own.defined()) {
      const int64_t steps = std::max<int64_t>(0, runs[r].size());
      own = at::zeros({q.size(0), q.size(1), steps, v.size(3)}, q.options());
      own_sums = at::zeros({q.size(0), q.size(1), steps}, q.options().dtype(wide_));
      continue;
    }
    if (any_masks(grid_, first_mask_)) {
      const at::Tensor none = own_sums.eq(no_sum);
      if (total.defined()) {
        own = at::where(none.unsqueeze(-1), by_head(block, total / double(steps_), true), own);
      }
      own_sums = own_sums.masked_fill(none, std::log(double(steps_)));
    }
    own = own.to(dtype_);
  }
}

std::vector<Tensors> RingRun::forward() {
  log(false);
  bring(std::vector<std::vector<at::Tensor>>(blocks()));
  Values y(blocks()), sums(blocks());
  std::vector<at::Tensor> totals(blocks()), travel;
  for (size_t b = 0; b < blocks(); ++b) {
    y[b].resize(members_.runs(member(b)).size());
    sums[b].resize(y[b].size());
  }
  Pairs at = own_;
  for (int64_t hop = 0;; ++hop) {
    std::optional<PermuteGroup::Transfer> coming;
    if (hop < members_.hops()) {
      if (hop == 0) travel = packs(own_);
      coming = pass_on(travel, 1, hop + 1, dtype_);
    }
    each([&](size_t b) {
      if (idle(b)) return;
      for (const RingSchedule::Pair pair : members_.pairs(member(b), hop)) {
        merge(y[b][pair.rows], sums[b][pair.rows], local(b, hop, pair, at).forward());
      }
      if (!gives_means()) return;
      for (const at::Tensor& values : at.values[b]) {
        const at::Tensor sum = values.sum(2, true, wide_);
        totals[b] = totals[b].defined() ? totals[b].add_(sum) : sum;
      }
    });
    if (!coming) break;
    travel = coming->wait();
    at = unpacked_at(travel, hop + 1, dtype_);
  }
  std::vector<Values> own(blocks());
  each([&](size_t b) {
    finish(b, y, sums, totals[b]);
    own[b] = {std::move(y[b]), std::move(sums[b])};
  });
  const auto whole = collect(own);
  std::vector<Tensors> out(blocks());
  each([&](size_t b) {
    out[b] = attention_outputs({whole[b][0], whole[b][1]}, grid_.blocks[b][0]);
  });
  return out;
}

/// The gradient of all values, for each shared head, by steps that may attend to nothing.
at::Tensor RingRun::lost(size_t block) const {
  at::Tensor all;
  const std::vector<Interval>& runs = members_.runs(member(block));
  for (size_t r = 0; r < runs.size(); ++r) {
    if (runs[r].empty()) continue;
    const auto shape_of = [&](const Values& values) {
      std::vector<int64_t> shape = values[block][0].sizes().vec();
      shape[2] = steps_;
      return at::empty({1, 1, 1, 1}, values[block][0].options()).expand(shape);
    };
    const LocalAttention whole(q_[block][r], shape_of(own_.keys), shape_of(own_.values),
                               part_of(block, r, runs[r], {0, steps_}));
    const at::Tensor alone = whole.alone();
    if (!alone.defined()) continue;
    const at::Tensor sum = dy_[block][r]
                               .to(wide_)
                               .masked_fill(alone.logical_not(), 0)
                               .sum(2, true)
                               .div_(double(steps_));
    all = all.defined() ? all.add_(sum) : sum;
  }
  return all.defined() ? by_shared_head(block, all) : all;
}

/// Gradients by what a block has at present; adds that of the query.
std::vector<RingRun::Part> RingRun::gradients(size_t block, int64_t hop, const Pairs& at,
                                              Runs& dq) const {
  std::vector<Part> parts;
  for (const RingSchedule::Pair pair : members_.pairs(member(block), hop)) {
    const Tensors found =
        local(block, hop, pair, at)
            .backward(dy_[block][pair.rows], y_[block][pair.rows], sums_[block][pair.rows]);
    at::Tensor& query = dq[pair.rows];
    query = query.defined() ? query.add_(found[0]) : found[0].to(wide_);
    parts.push_back({pair.keys, by_shared_head(block, found[1]), by_shared_head(block, found[2])});
  }
  return parts;
}

std::vector<Tensors> RingRun::backward() {
  log(true);
  std::vector<std::vector<at::Tensor>> more(blocks());
  for (size_t b = 0; b < blocks(); ++b) {
    const LocalArgs& in = grid_.blocks[b];
    const at::Tensor y = heads_first(in[3]);
    more[b] = {y, in[4].to(wide_).reshape({y.size(0), y.size(1), y.size(2)}), heads_first(in[5])};
  }
  bring(std::move(more));
  Values dq(blocks());
  std::vector<at::Tensor> losses(blocks()), travel, sums(blocks());
  for (size_t b = 0; b < blocks(); ++b) dq[b].resize(members_.runs(member(b)).size());
  Pairs at = own_;
  std::optional<PermuteGroup::Transfer> behind;
  for (int64_t hop = 0;; ++hop) {
    std::optional<PermuteGroup::Transfer> coming;
    if (hop < members_.hops()) {
      if (hop == 0) travel = packs(own_);
      coming = pass_on(travel, 1, hop + 1, dtype_);
    }
    std::vector<std::vector<Part>> parts(blocks());
    each([&](size_t b) {
      if (idle(b)) return;
      if (hop == 0 && gives_means()) losses[b] = lost(b);
      parts[b] = gradients(b, hop, at, dq[b]);
    });
    if (behind) sums = behind->wait();
    each([&](size_t b) {
      const auto list = forms(b, members_.source(member(b), hop), wide_);
      if (hop == 0) {
        sums[b] = at::zeros({packed_bytes(list)}, q_[b][0].options().dtype(at::kByte));
      }
      const Runs all = unpacked(sums[b], list);
      for (const Part& part : std::exchange(parts[b], {})) {
        all[part.run].add_(part.keys);
        all[all.size() / 2 + part.run].add_(part.values);
      }
      for (size_t i = all.size() / 2; losses[b].defined() && i < all.size(); ++i) {
        all[i].add_(losses[b]);
      }
    });
    if (!coming) break;
    behind = pass_on(sums, 1, hop + 1, wide_);
    travel = coming->wait();
    at = unpacked_at(travel, hop + 1, dtype_);
  }
  at = {};
  travel.clear();
  if (members_.hops() > 0) sums = pass_on(sums, -members_.hops(), 0, wide_).wait();
  const Pairs home = unpacked_at(sums, 0, wide_);
  std::vector<Values> own(blocks());
  each([&](size_t b) {
    own[b].resize(3);
    for (size_t r = 0; r < dq[b].size(); ++r) {
      own[b][0].push_back(dq[b][r].defined() ? dq[b][r].to(dtype_) : at::zeros_like(q_[b][r]));
      own[b][1].push_back(home.keys[b][r].to(dtype_));
      own[b][2].push_back(home.values[b][r].to(dtype_));
    }
  });
  const auto whole = collect(own);
  std::vector<Tensors> out(blocks());
  each([&](size_t b) {
    const LocalArgs& in = grid_.blocks[b];
    out[b].push_back(steps_first(whole[b][0], in[0]));
    for (size_t i : {1, 2}) {
      out[b].push_back(steps_first(by_head(b, whole[b][i], false), in[i]));
    }
  });
  return out;
}

}  // namespace tessera::detail
