#include <tessera/framework/ops/attention/internal/ring_run.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <ATen/ATen.h>

namespace tessera::detail {
namespace {

constexpr double empty_lse = -std::numeric_limits<double>::infinity();

/// Merges the attention to some keys into that to others, (n, heads, steps, width), weighted by the
/// log-sum-exps; in place.
void merge(at::Tensor& y, at::Tensor& lse, AttentionResult other) {
  if (!y.defined()) {
    y = other.first.to(other.second.scalar_type());
    lse = other.second;
    return;
  }
  const at::Tensor all = at::logaddexp(lse, other.second), none = all.eq(empty_lse);
  const auto share = [&](const at::Tensor& one) {
    return at::sub(one, all).exp_().masked_fill_(none, 0).unsqueeze(-1);
  };
  y.mul_(share(lse)).addcmul_(other.first.to(y.scalar_type()), share(other.second));
  lse = all;
}

}  // namespace

/// Returns whether a block is empty along an axis other than the steps.
bool RingRun::idle(size_t block) const {
  const at::Tensor &q = q_[block][0], &v = own_.values[block][0];
  return q.size(0) == 0 || q.size(1) == 0 || q.size(3) == 0 || v.size(1) == 0 || v.size(3) == 0;
}

/// Returns the part of the global attention that one of a block's runs and these keys are.
BlockAttention RingRun::tile_attention(size_t block, size_t run, Interval rows,
                                       Interval keys) const {
  BlockAttention attention = terms_.block_attention(grid_.blocks[block]);
  attention.first = rows.lo - keys.lo;
  attention.partial = true;
  for (const Runs& runs : masks_[block]) {
    const at::Tensor& mask = runs.size() == 1 ? runs[0] : runs[run];
    attention.masks.push_back(mask.size(3) == 1 ? mask : mask.narrow(3, keys.lo, keys.size()));
  }
  return attention;
}

LocalAttention RingRun::local(size_t block, int64_t hop, RingSchedule::Tile tile,
                              const KeyValues& held) const {
  const Interval rows = members_.runs(member(block))[tile.rows],
                 keys = members_.runs(members_.source(member(block), hop))[tile.keys];
  return {q_[block][tile.rows], held.keys[block][tile.keys], held.values[block][tile.keys],
          tile_attention(block, tile.rows, rows, keys)};
}

// Heads of key and value that query heads share.

/// Returns the local query heads that read one of the block's shared heads.
Interval RingRun::heads_of(size_t block, int64_t shared) const {
  const BlockAttention attention = terms_.block_attention(grid_.blocks[block]);
  const int64_t first = (attention.shared_heads.lo + shared) * attention.group;
  const Interval own = intersect({first, first + attention.group}, attention.heads);
  // A block without query heads has a shared head if its empty interval is inside a group.
  if (own.empty()) return {0, 0};
  return {own.lo - attention.heads.lo, own.hi - attention.heads.lo};
}

/// Sums over the query heads that share a head.
at::Tensor RingRun::reduce_query_groups(size_t block, const at::Tensor& x) const {
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

/// Expands shared heads to query heads: copies to all heads of a group, or only to its first, with
/// 0 in the others.
at::Tensor RingRun::expand_query_groups(size_t block, const at::Tensor& x, bool all) const {
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

/// Fills in the output of fully masked steps; `total`: the sum of all values, per shared head.
void RingRun::finish(size_t block, Values& y, Values& lse, const at::Tensor& total) const {
  const std::vector<Interval>& runs = members_.runs(member(block));
  const at::Tensor &q = q_[block][0], &v = own_.values[block][0];
  for (size_t r = 0; r < runs.size(); ++r) {
    at::Tensor &own = y[block][r], &own_lse = lse[block][r];
    if (!own.defined()) {
      const int64_t steps = std::max<int64_t>(0, runs[r].size());
      own = at::zeros({q.size(0), q.size(1), steps, v.size(3)}, q.options());
      own_lse = at::zeros({q.size(0), q.size(1), steps}, q.options().dtype(wide_));
      continue;
    }
    if (has_masks()) {
      const at::Tensor none = own_lse.eq(empty_lse);
      if (total.defined()) {
        own = at::where(none.unsqueeze(-1),
                        expand_query_groups(block, total / double(steps_), true), own);
      }
      own_lse = own_lse.masked_fill(none, std::log(double(steps_)));
    }
    own = own.to(dtype_);
  }
}

std::vector<Tensors> RingRun::forward() {
  log(false);
  split_inputs(std::vector<std::vector<at::Tensor>>(blocks()));
  Values y(blocks()), lse(blocks());
  std::vector<at::Tensor> totals(blocks()), in_flight;
  for (size_t b = 0; b < blocks(); ++b) {
    y[b].resize(members_.runs(member(b)).size());
    lse[b].resize(y[b].size());
  }
  KeyValues held = own_;
  for (int64_t hop = 0;; ++hop) {
    std::optional<PermuteGroup::Transfer> incoming;
    if (hop < members_.hops()) {
      if (hop == 0) in_flight = packs(own_);
      incoming = rotate(in_flight, 1, hop + 1, dtype_);
    }
    each([&](size_t b) {
      if (idle(b)) return;
      for (const RingSchedule::Tile tile : members_.tiles(member(b), hop)) {
        merge(y[b][tile.rows], lse[b][tile.rows], local(b, hop, tile, held).forward());
      }
      if (!gives_means()) return;
      for (const at::Tensor& values : held.values[b]) {
        const at::Tensor sum = values.sum(2, true, wide_);
        totals[b] = totals[b].defined() ? totals[b].add_(sum) : sum;
      }
    });
    if (!incoming) break;
    in_flight = incoming->wait();
    held = unpacked_at(in_flight, hop + 1, dtype_);
  }
  std::vector<Values> own(blocks());
  each([&](size_t b) {
    finish(b, y, lse, totals[b]);
    own[b] = {std::move(y[b]), std::move(lse[b])};
  });
  const auto outputs = join_runs(own);
  std::vector<Tensors> out(blocks());
  each([&](size_t b) {
    out[b] = attention_outputs({outputs[b][0], outputs[b][1]}, grid_.blocks[b][0]);
  });
  return out;
}

/// Returns the gradient of every value, per shared head, through the means that fully masked steps
/// give; undefined if there are none.
at::Tensor RingRun::mean_gradient(size_t block) const {
  at::Tensor all;
  const std::vector<Interval>& runs = members_.runs(member(block));
  for (size_t r = 0; r < runs.size(); ++r) {
    if (runs[r].empty()) continue;
    const auto shape_of = [&](const Values& values) {
      std::vector<int64_t> shape = values[block][0].sizes().vec();
      shape[2] = steps_;
      return at::empty({1, 1, 1, 1}, values[block][0].options()).expand(shape);
    };
    const LocalAttention full(q_[block][r], shape_of(own_.keys), shape_of(own_.values),
                              tile_attention(block, r, runs[r], {0, steps_}));
    const at::Tensor masked = full.fully_masked();
    if (!masked.defined()) continue;
    const at::Tensor sum = dy_[block][r]
                               .to(wide_)
                               .masked_fill(masked.logical_not(), 0)
                               .sum(2, true)
                               .div_(double(steps_));
    all = all.defined() ? all.add_(sum) : sum;
  }
  return all.defined() ? reduce_query_groups(block, all) : all;
}

/// Computes gradients with the keys and values that a block holds after `hop` hops; adds to dq.
std::vector<RingRun::KeyGradients> RingRun::gradients(size_t block, int64_t hop,
                                                      const KeyValues& held, Runs& dq) const {
  std::vector<KeyGradients> key_gradients;
  for (const RingSchedule::Tile tile : members_.tiles(member(block), hop)) {
    const Tensors grads =
        local(block, hop, tile, held)
            .backward(dy_[block][tile.rows], y_[block][tile.rows], lse_[block][tile.rows]);
    at::Tensor& query = dq[tile.rows];
    query = query.defined() ? query.add_(grads[0]) : grads[0].to(wide_);
    key_gradients.push_back(
        {tile.keys, reduce_query_groups(block, grads[1]), reduce_query_groups(block, grads[2])});
  }
  return key_gradients;
}

std::vector<Tensors> RingRun::backward() {
  log(true);
  std::vector<std::vector<at::Tensor>> more(blocks());
  for (size_t b = 0; b < blocks(); ++b) {
    const LocalArgs& in = grid_.blocks[b];
    const at::Tensor y = heads_first(in[3]);
    more[b] = {y, in[4].to(wide_).reshape({y.size(0), y.size(1), y.size(2)}), heads_first(in[5])};
  }
  split_inputs(std::move(more));
  Values dq(blocks());
  std::vector<at::Tensor> mean_gradients(blocks()), in_flight, dkv(blocks());
  for (size_t b = 0; b < blocks(); ++b) dq[b].resize(members_.runs(member(b)).size());
  KeyValues held = own_;
  std::optional<PermuteGroup::Transfer> incoming_dkv;
  for (int64_t hop = 0;; ++hop) {
    std::optional<PermuteGroup::Transfer> incoming;
    if (hop < members_.hops()) {
      if (hop == 0) in_flight = packs(own_);
      incoming = rotate(in_flight, 1, hop + 1, dtype_);
    }
    std::vector<std::vector<KeyGradients>> key_gradients(blocks());
    each([&](size_t b) {
      if (idle(b)) return;
      if (hop == 0 && gives_means()) mean_gradients[b] = mean_gradient(b);
      key_gradients[b] = gradients(b, hop, held, dq[b]);
    });
    if (incoming_dkv) dkv = incoming_dkv->wait();
    each([&](size_t b) {
      const auto list = packed_specs(b, members_.source(member(b), hop), wide_);
      if (hop == 0) {
        dkv[b] = at::zeros({packed_bytes(list)}, q_[b][0].options().dtype(at::kByte));
      }
      const Runs all = unpacked(dkv[b], list);
      for (const KeyGradients& gradient : std::exchange(key_gradients[b], {})) {
        all[gradient.run].add_(gradient.keys);
        all[all.size() / 2 + gradient.run].add_(gradient.values);
      }
      for (size_t i = all.size() / 2; mean_gradients[b].defined() && i < all.size(); ++i) {
        all[i].add_(mean_gradients[b]);
      }
    });
    if (!incoming) break;
    incoming_dkv = rotate(dkv, 1, hop + 1, wide_);
    in_flight = incoming->wait();
    held = unpacked_at(in_flight, hop + 1, dtype_);
  }
  held = {};
  in_flight.clear();
  if (members_.hops() > 0) dkv = rotate(dkv, -members_.hops(), 0, wide_).wait();
  const KeyValues home = unpacked_at(dkv, 0, wide_);
  std::vector<Values> own(blocks());
  each([&](size_t b) {
    own[b].resize(3);
    for (size_t r = 0; r < dq[b].size(); ++r) {
      own[b][0].push_back(dq[b][r].defined() ? dq[b][r].to(dtype_) : at::zeros_like(q_[b][r]));
      own[b][1].push_back(home.keys[b][r].to(dtype_));
      own[b][2].push_back(home.values[b][r].to(dtype_));
    }
  });
  const auto outputs = join_runs(own);
  std::vector<Tensors> out(blocks());
  each([&](size_t b) {
    const LocalArgs& in = grid_.blocks[b];
    out[b].push_back(steps_first(outputs[b][0], in[0]));
    for (size_t i : {1, 2}) {
      out[b].push_back(steps_first(expand_query_groups(b, outputs[b][i], false), in[i]));
    }
  });
  return out;
}

}  // namespace tessera::detail
