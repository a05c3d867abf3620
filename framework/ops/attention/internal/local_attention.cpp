#include <tessera/framework/ops/attention/internal/local_attention.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/base/error.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Scores that a bias is made for at once.
constexpr int64_t most_scores = 1 << 20;

void check_extents(const at::Tensor& x, const Shape& expected) {
  if (x.sizes() == expected) return;
  throw ShapeError("attention", "a block is " + to_string(expected), to_string(x.sizes().vec()),
                   "cut all operands alike");
}

at::Tensor joint(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() ? a.logical_and(b) : a.defined() ? a : b;
}

/// An interval of an axis, or all of it where it is 1 long and stands for more.
at::Tensor part_of(const at::Tensor& mask, int64_t axis, Interval part) {
  return mask.size(axis) == 1 ? mask : mask.narrow(axis, part.lo, part.size());
}

at::Tensor rows_of(const at::Tensor& x, Interval rows) { return x.narrow(2, rows.lo, rows.size()); }

/// Steps of which none is open; nothing if there are none, where that is known at no cost.
at::Tensor closed(const at::Tensor& open) {
  const at::Tensor alone = open.logical_not();
  return alone.is_cpu() && !alone.any().item<bool>() ? at::Tensor() : alone;
}

/// (n, heads, steps, features), its steps before its heads in memory, as an operation gives it.
at::Tensor new_block(const at::TensorOptions& options, const Shape& shape) {
  return at::empty({shape[0], shape[2], shape[1], shape[3]}, options).transpose(1, 2);
}

}  // namespace

Interval detail::shared_heads(Interval heads, int64_t group) {
  return {heads.lo / group, (heads.hi + group - 1) / group};
}

LocalAttention::LocalAttention(at::Tensor query, at::Tensor key, at::Tensor value,
                               AttentionPart part)
    : query_(std::move(query)),
      key_(std::move(key)),
      value_(std::move(value)),
      part_(std::move(part)) {
  const int64_t n = query_.size(0), dim = query_.size(3), s = key_.size(2);
  const int64_t shared = has_groups() ? part_.shared_heads.size() : query_.size(1);
  check_extents(key_, {n, shared, s, dim});
  check_extents(value_, {n, shared, s, value_.size(3)});
  if (has_groups() && !(shared_heads(part_.heads, part_.group) == part_.shared_heads)) {
    throw ShapeError("attention", "a block has the shared heads that its own read",
                     str(part_.shared_heads.lo, " to ", part_.shared_heads.hi),
                     "cut all operands alike");
  }
  // All that comes before the first step is open to it, and nothing else is left to forbid.
  if (part_.causal && part_.first >= s - 1) part_.causal = false;
  for (const at::Tensor& mask : part_.masks) add_mask(mask);
}

void LocalAttention::add_mask(const at::Tensor& mask) {
  if (at::isFloatingType(mask.scalar_type())) {
    const at::Tensor closed = mask.isneginf(), number = mask.masked_fill(closed, 0);
    added_ = added_.defined() ? added_ + number : number;
    add_mask(closed.logical_not());
    return;
  }
  at::Tensor& same = mask.size(2) == 1 ? keys_ : mask.size(3) == 1 ? rows_ : pairs_;
  same = joint(same, mask);
}

/// Of what half-precision numbers are summed in.
at::TensorOptions LocalAttention::in_more_digits() const {
  return query_.options().dtype(at::toOpMathType(query_.scalar_type()));
}

/// Gradients for each head of the query; those of keys and values, sums of many addends, as given.
Tensors LocalAttention::new_gradients(const at::TensorOptions& sums) const {
  const int64_t n = query_.size(0), heads = query_.size(1), s = key_.size(2);
  return {new_block(query_.options(), {n, heads, query_.size(2), query_.size(3)}),
          new_block(sums, {n, heads, s, key_.size(3)}),
          new_block(sums, {n, heads, s, value_.size(3)})};
}

// Heads that several of the query share.

/// Whether the kernel finds the shared head of each by itself.
bool LocalAttention::takes_groups() const {
  const bool even = part_.heads.lo % part_.group == 0 && part_.heads.hi % part_.group == 0;
  AttentionCall call{query_, key_, value_, part_.scale, part_.causal, {}, part_.shares_sums};
  if (!is_plain() || keys_.defined()) call.bias = at::Tensor();
  return even && call.takes_groups();
}

/// Heads of this block's query that read one of its shared heads.
Interval LocalAttention::heads_of(int64_t shared) const {
  const int64_t first = (part_.shared_heads.lo + shared) * part_.group;
  const Interval own = intersect({first, first + part_.group}, part_.heads);
  return {own.lo - part_.heads.lo, own.hi - part_.heads.lo};
}

/// One shared head, which stands for all that read it without a copy.
LocalAttention LocalAttention::of_shared(int64_t head) const {
  const Interval own = heads_of(head);
  const auto expanded = [&](const at::Tensor& x) {
    return x.narrow(1, head, 1).expand({-1, own.size(), -1, -1});
  };
  AttentionPart part = part_;
  part.group = 1;
  for (at::Tensor& mask : part.masks) mask = part_of(mask, 1, own);
  return {query_.narrow(1, own.lo, own.size()), expanded(key_), expanded(value_), part};
}

AttentionResult LocalAttention::by_groups() const {
  if (key_.size(1) == 1) return of_shared(0).forward();
  const int64_t n = query_.size(0), heads = query_.size(1), t = query_.size(2);
  const at::Tensor y = new_block(query_.options(), {n, heads, t, value_.size(3)});
  const at::Tensor sums = at::empty({n, heads, t}, in_more_digits());
  for (int64_t head = 0; head < key_.size(1); ++head) {
    const Interval own = heads_of(head);
    const AttentionResult part = of_shared(head).forward();
    y.narrow(1, own.lo, own.size()).copy_(part.first);
    sums.narrow(1, own.lo, own.size()).copy_(part.second);
  }
  return {y, sums};
}

Tensors LocalAttention::backward_by_groups(const at::Tensor& dy, const at::Tensor& y,
                                           const at::Tensor& sums) const {
  if (key_.size(1) == 1) return of_shared(0).backward(dy, y, sums);
  const Tensors all = new_gradients(query_.options());
  for (int64_t head = 0; head < key_.size(1); ++head) {
    const Interval own = heads_of(head);
    const auto of_own = [&](const at::Tensor& x) { return x.narrow(1, own.lo, own.size()); };
    const Tensors part = of_shared(head).backward(of_own(dy), of_own(y), of_own(sums));
    for (size_t i = 0; i < all.size(); ++i) of_own(all[i]).copy_(part[i]);
  }
  return all;
}

// Steps that are computed at once.

/// As many as have a bias of a bounded size, and of a window no more than it is worth.
int64_t LocalAttention::chunk_rows() const {
  const int64_t t = query_.size(2), s = key_.size(2);
  int64_t masks = 1, most = most_scores, rows = t, keys = s;
  for (const at::Tensor& mask : {keys_, pairs_, added_}) {
    if (mask.defined()) masks = std::max(masks, mask.size(0) * mask.size(1));
  }
  // As much again as what the caller has already.
  if (pairs_.defined()) most = std::max(most, pairs_.numel() / 4);
  if (part_.window) {
    rows = std::max<int64_t>(128, *part_.window / 2);
    keys = std::min(s, rows + (part_.causal ? 1 : 2) * *part_.window);
  }
  return std::clamp<int64_t>(most / (masks * keys), 64, std::max<int64_t>(64, rows));
}

/// Keys that any of some steps may attend to by its place; one at least.
Interval LocalAttention::keys_of(Interval rows) const {
  const int64_t s = key_.size(2), reach = part_.window.value_or(0) - 1;
  Interval keys = {0, s};
  if (part_.window) keys = {part_.first + rows.lo - reach, part_.first + rows.hi + reach};
  if (part_.causal) keys.hi = part_.first + rows.hi;
  keys = {std::clamp<int64_t>(keys.lo, 0, s - 1), std::clamp<int64_t>(keys.hi, 1, s)};
  return {std::min(keys.lo, keys.hi - 1), keys.hi};
}

/// What some steps may attend to, (n or 1, heads or 1, steps, keys).
at::Tensor LocalAttention::open(Interval rows, Interval keys) const {
  at::Tensor open;
  if (part_.causal || part_.window) {
    // Key j is as far behind step i as i - j and what the first ones are apart.
    const int64_t apart = part_.first + rows.lo - keys.lo;
    open = at::ones({1, 1, rows.size(), keys.size()}, query_.options().dtype(at::kBool));
    if (part_.causal) open.tril_(apart);
    if (part_.window) open.triu_(apart - *part_.window + 1).tril_(apart + *part_.window - 1);
  }
  if (keys_.defined()) open = joint(open, part_of(keys_, 3, keys));
  if (!pairs_.defined()) return open;
  return joint(open, pairs_.narrow(2, rows.lo, rows.size()).narrow(3, keys.lo, keys.size()));
}

/// The bias of `open`, which is undefined where all is open, and of what is added to the scores.
void LocalAttention::set_bias(Chunk& chunk, const at::Tensor& open) const {
  at::Tensor added;
  if (added_.defined()) added = part_of(part_of(added_, 2, chunk.rows), 3, chunk.keys);
  std::vector<int64_t> shape = {1, 1, 1, 1};
  for (const at::Tensor& each : {open, added}) {
    if (each.defined()) shape = at::infer_size(shape, each.sizes());
  }
  // Rows begin at multiples of 16 numbers, as CUDA's kernels want them.
  const int64_t keys = chunk.keys.size();
  shape.back() = (keys + 15) / 16 * 16;
  at::Tensor bias = at::zeros(shape, query_.options()).narrow(-1, 0, keys);
  if (added.defined()) bias.copy_(added);
  if (open.defined()) {
    bias.masked_fill_(open.logical_not(), -std::numeric_limits<double>::infinity());
  }
  chunk.call.bias = bias.expand({query_.size(0), query_.size(1), chunk.rows.size(), keys});
}

/// All steps, of a plain form.
LocalAttention::Chunk LocalAttention::whole() const {
  const int64_t t = query_.size(2), s = key_.size(2);
  Chunk chunk{
      {query_, key_, value_, part_.scale, part_.causal, {}, part_.shares_sums}, {0, t}, {0, s}};
  if (keys_.defined()) {
    set_bias(chunk, keys_);
    at::Tensor any = keys_.any(-1, true);
    if (part_.causal) {
      const at::Tensor last = at::arange(t, keys_.options().dtype(at::kLong)).clamp_max(s - 1);
      any = keys_.cumsum(-1).index_select(-1, last).gt(0).transpose(-1, -2);
    }
    chunk.alone = closed(joint(any, rows_));
  } else if (rows_.defined()) {
    chunk.alone = closed(rows_);
  }
  return chunk;
}

LocalAttention::Chunk LocalAttention::chunk(Interval rows) const {
  const Interval keys = keys_of(rows);
  const auto of_keys = [&](const at::Tensor& x) { return x.narrow(2, keys.lo, keys.size()); };
  Chunk chunk{{rows_of(query_, rows), of_keys(key_), of_keys(value_), part_.scale}, rows, keys};
  chunk.call.shares_sums = part_.shares_sums;
  const at::Tensor all = open(rows, keys);
  set_bias(chunk, all);
  chunk.alone = alone_among(rows, all);
  return chunk;
}

at::Tensor LocalAttention::alone_among(Interval rows, const at::Tensor& open) const {
  if (!open.defined()) return rows_.defined() ? closed(rows_of(rows_, rows)) : at::Tensor();
  const at::Tensor any = open.any(-1, true);
  return closed(rows_.defined() ? joint(any, rows_of(rows_, rows)) : any);
}

at::Tensor LocalAttention::alone() const {
  if (part_.masks.empty()) return {};
  const int64_t t = query_.size(2), rows = chunk_rows();
  at::Tensor all;
  for (int64_t at = 0; at < t; at += rows) {
    const Interval some = {at, std::min(at + rows, t)}, keys = keys_of(some);
    const at::Tensor one = alone_among(some, open(some, keys));
    if (!one.defined()) continue;
    if (!all.defined()) all = at::zeros({query_.size(0), query_.size(1), t, 1}, one.options());
    rows_of(all, some).copy_(one);
  }
  return all;
}

/// Whether kernels know by themselves which steps attend to which, but for a mask of keys.
bool LocalAttention::is_plain() const {
  const bool by_kernel = !part_.causal || part_.first <= 0;
  return by_kernel && !part_.window && !pairs_.defined() && !added_.defined();
}

void LocalAttention::each_chunk(const std::function<void(const Chunk&)>& visit) const {
  if (is_plain()) {
    visit(whole());
    return;
  }
  const int64_t t = query_.size(2), rows = chunk_rows();
  for (int64_t at = 0; at < t; at += rows) visit(chunk({at, std::min(at + rows, t)}));
}

AttentionResult LocalAttention::forward() const {
  if (has_groups() && !takes_groups()) return by_groups();
  const int64_t t = query_.size(2), heads = query_.size(1);
  at::Tensor y, sums;
  each_chunk([&](const Chunk& chunk) {
    auto [part, part_sums] = chunk.call.forward();
    if (chunk.alone.defined()) {
      // As scores that are all 0 would have it.
      const bool zeros = part_.zeros || part_.partial;
      at::Tensor mean = zeros ? at::zeros({}, part.options()) : value_.mean(2, true);
      if (!zeros && has_groups()) mean = mean.repeat_interleave(part_.group, 1);
      part = at::where(chunk.alone, mean, part);
      part_sums = part_sums.masked_fill(chunk.alone.squeeze(-1),
                                        part_.partial ? -std::numeric_limits<double>::infinity()
                                                      : std::log(double(key_.size(2))));
    }
    if (chunk.rows.size() == t) {
      y = part;
      sums = part_sums;
      return;
    }
    if (!y.defined()) {
      y = new_block(part.options(), {part.size(0), heads, t, part.size(3)});
      sums = at::empty({part.size(0), heads, t}, part_sums.options());
    }
    rows_of(y, chunk.rows).copy_(part);
    rows_of(sums, chunk.rows).copy_(part_sums);
  });
  return {y, sums};
}

Tensors LocalAttention::backward(const at::Tensor& dy, const at::Tensor& y,
                                 const at::Tensor& sums) const {
  Shape extents = query_.sizes().slice(0, 3).vec();
  check_extents(sums, extents);
  extents.push_back(value_.size(3));
  check_extents(dy, extents);
  check_extents(y, extents);
  if (has_groups()) return backward_by_groups(dy, y, sums);
  const int64_t t = query_.size(2), s = key_.size(2);
  Tensors all;
  each_chunk([&](const Chunk& chunk) {
    at::Tensor given = rows_of(dy, chunk.rows), lost;
    if (chunk.alone.defined()) {
      if (!part_.zeros && !part_.partial) {
        lost = given.masked_fill(chunk.alone.logical_not(), 0).sum(2, true).div_(s);
      }
      given = given.masked_fill(chunk.alone, 0);
    }
    Tensors part =
        chunk.call.backward(given, rows_of(y, chunk.rows), rows_of(sums, chunk.rows).contiguous());
    if (chunk.rows.size() == t && chunk.keys.size() == s) {
      all = std::move(part);
    } else {
      if (all.empty()) {
        all = new_gradients(in_more_digits());
        for (size_t i : {1, 2}) all[i].zero_();
      }
      rows_of(all[0], chunk.rows).copy_(part[0]);
      for (size_t i : {1, 2}) rows_of(all[i], chunk.keys).add_(part[i]);
    }
    if (lost.defined()) all[2].add_(lost);
  });
  for (size_t i : {1, 2}) all[i] = all[i].to(key_.scalar_type());
  return all;
}

at::Tensor LocalAttention::mask_gradient(const at::Tensor& mask, const at::Tensor& dy,
                                         const at::Tensor& y, const at::Tensor& sums) const {
  const at::Tensor all = at::zeros(mask.sizes(), in_more_digits());
  for (int64_t head = 0; has_groups() && head < key_.size(1); ++head) {
    const Interval own = heads_of(head);
    const auto of_own = [&](const at::Tensor& x) { return x.narrow(1, own.lo, own.size()); };
    part_of(all, 1, own)
        .add_(of_shared(head).mask_gradient(part_of(mask, 1, own), of_own(dy), of_own(y),
                                            of_own(sums)));
  }
  if (has_groups()) return all;
  each_chunk([&](const Chunk& chunk) {
    at::Tensor given = rows_of(dy, chunk.rows);
    if (chunk.alone.defined()) given = given.masked_fill(chunk.alone, 0);
    const at::Tensor scores =
        chunk.call.shares(given, rows_of(y, chunk.rows), rows_of(sums, chunk.rows)).second;
    const at::Tensor own = part_of(part_of(all, 2, chunk.rows), 3, chunk.keys);
    own.add_(scores.sum_to_size(own.sizes()));
  });
  return all;
}

}  // namespace tessera
