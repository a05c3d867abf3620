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

/// Maximum number of scores for which a bias is made at once.
constexpr int64_t max_scores = 1 << 20;

void check_extents(const at::Tensor& x, const Shape& expected) {
  if (x.sizes() == expected) return;
  throw ShapeError("attention", "a block must be " + to_string(expected),
                   to_string(x.sizes().vec()), "shard all operands the same way");
}

at::Tensor combine_masks(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() ? a.logical_and(b) : a.defined() ? a : b;
}

/// Returns an interval of an axis, or the full axis if it is broadcast (extent 1).
at::Tensor narrow_axis(const at::Tensor& mask, int64_t axis, Interval interval) {
  return mask.size(axis) == 1 ? mask : mask.narrow(axis, interval.lo, interval.size());
}

at::Tensor rows_of(const at::Tensor& x, Interval rows) { return x.narrow(2, rows.lo, rows.size()); }

/// Returns the mask of steps that are not `allowed`; undefined if there are none and that is known
/// without waiting for a GPU.
at::Tensor masked_out(const at::Tensor& allowed) {
  const at::Tensor masked = allowed.logical_not();
  return masked.is_cpu() && !masked.any().item<bool>() ? at::Tensor() : masked;
}

/// Allocates (n, heads, steps, features) with steps before heads in memory, as in an operation's
/// output.
at::Tensor new_block(const at::TensorOptions& options, const Shape& shape) {
  return at::empty({shape[0], shape[2], shape[1], shape[3]}, options).transpose(1, 2);
}

}  // namespace

Interval detail::shared_heads(Interval heads, int64_t group) {
  return {heads.lo / group, (heads.hi + group - 1) / group};
}

LocalAttention::LocalAttention(at::Tensor query, at::Tensor key, at::Tensor value,
                               BlockAttention block)
    : query_(std::move(query)),
      key_(std::move(key)),
      value_(std::move(value)),
      block_(std::move(block)) {
  const int64_t n = query_.size(0), dim = query_.size(3), s = key_.size(2);
  const int64_t shared = has_groups() ? block_.shared_heads.size() : query_.size(1);
  check_extents(key_, {n, shared, s, dim});
  check_extents(value_, {n, shared, s, value_.size(3)});
  if (has_groups() && !(shared_heads(block_.heads, block_.group) == block_.shared_heads)) {
    throw ShapeError("attention", "a block must have the shared heads that its query heads read",
                     str(block_.shared_heads.lo, " to ", block_.shared_heads.hi),
                     "shard all operands the same way");
  }
  // The first step may attend to all keys, so that a causal mask forbids nothing.
  if (block_.causal && block_.first >= s - 1) block_.causal = false;
  for (const at::Tensor& mask : block_.masks) add_mask(mask);
}

void LocalAttention::add_mask(const at::Tensor& mask) {
  if (at::isFloatingType(mask.scalar_type())) {
    const at::Tensor forbidden = mask.isneginf(), number = mask.masked_fill(forbidden, 0);
    added_ = added_.defined() ? added_ + number : number;
    add_mask(forbidden.logical_not());
    return;
  }
  at::Tensor& same = mask.size(2) == 1 ? keys_ : mask.size(3) == 1 ? rows_ : pairs_;
  same = combine_masks(same, mask);
}

/// Returns the tensor options for accumulation: float32 for float16 and bfloat16.
at::TensorOptions LocalAttention::accumulate_options() const {
  return query_.options().dtype(at::toOpMathType(query_.scalar_type()));
}

/// Allocates the gradients per query head; those of key and value, which accumulate, with options
/// `accumulated`.
Tensors LocalAttention::new_gradients(const at::TensorOptions& accumulated) const {
  const int64_t n = query_.size(0), heads = query_.size(1), s = key_.size(2);
  return {new_block(query_.options(), {n, heads, query_.size(2), query_.size(3)}),
          new_block(accumulated, {n, heads, s, key_.size(3)}),
          new_block(accumulated, {n, heads, s, value_.size(3)})};
}

// Heads of key and value that query heads share.

/// Returns whether the kernel itself maps query heads to shared heads.
bool LocalAttention::supports_groups() const {
  const bool even = block_.heads.lo % block_.group == 0 && block_.heads.hi % block_.group == 0;
  AttentionCall call{
      query_, key_, value_, block_.scale, block_.causal, {}, block_.value_is_sharded};
  if (!is_plain() || keys_.defined()) call.bias = at::Tensor();
  return even && call.supports_groups();
}

/// Returns the local query heads that read one of the block's shared heads.
Interval LocalAttention::heads_of(int64_t shared) const {
  const int64_t first = (block_.shared_heads.lo + shared) * block_.group;
  const Interval own = intersect({first, first + block_.group}, block_.heads);
  return {own.lo - block_.heads.lo, own.hi - block_.heads.lo};
}

/// Returns the attention to one shared head, which is expanded, not copied, to its query heads.
LocalAttention LocalAttention::for_shared_head(int64_t head) const {
  const Interval own = heads_of(head);
  const auto expanded = [&](const at::Tensor& x) {
    return x.narrow(1, head, 1).expand({-1, own.size(), -1, -1});
  };
  BlockAttention block = block_;
  block.group = 1;
  for (at::Tensor& mask : block.masks) mask = narrow_axis(mask, 1, own);
  return {query_.narrow(1, own.lo, own.size()), expanded(key_), expanded(value_), block};
}

AttentionResult LocalAttention::forward_by_groups() const {
  if (key_.size(1) == 1) return for_shared_head(0).forward();
  const int64_t n = query_.size(0), heads = query_.size(1), t = query_.size(2);
  const at::Tensor y = new_block(query_.options(), {n, heads, t, value_.size(3)});
  const at::Tensor lse = at::empty({n, heads, t}, accumulate_options());
  for (int64_t head = 0; head < key_.size(1); ++head) {
    const Interval own = heads_of(head);
    const AttentionResult result = for_shared_head(head).forward();
    y.narrow(1, own.lo, own.size()).copy_(result.first);
    lse.narrow(1, own.lo, own.size()).copy_(result.second);
  }
  return {y, lse};
}

Tensors LocalAttention::backward_by_groups(const at::Tensor& dy, const at::Tensor& y,
                                           const at::Tensor& lse) const {
  if (key_.size(1) == 1) return for_shared_head(0).backward(dy, y, lse);
  const Tensors all = new_gradients(query_.options());
  for (int64_t head = 0; head < key_.size(1); ++head) {
    const Interval own = heads_of(head);
    const auto of_own = [&](const at::Tensor& x) { return x.narrow(1, own.lo, own.size()); };
    const Tensors grads = for_shared_head(head).backward(of_own(dy), of_own(y), of_own(lse));
    for (size_t i = 0; i < all.size(); ++i) of_own(all[i]).copy_(grads[i]);
  }
  return all;
}

// Chunks of steps.

/// Returns the number of steps in a chunk: bounds the size of a bias and, with a window, the share
/// of scores that are computed but masked.
int64_t LocalAttention::chunk_rows() const {
  const int64_t t = query_.size(2), s = key_.size(2);
  int64_t masks = 1, limit = max_scores, rows = t, keys = s;
  for (const at::Tensor& mask : {keys_, pairs_, added_}) {
    if (mask.defined()) masks = std::max(masks, mask.size(0) * mask.size(1));
  }
  // A bias may take as much memory as the caller's mask does.
  if (pairs_.defined()) limit = std::max(limit, pairs_.numel() / 4);
  if (block_.window) {
    rows = std::max<int64_t>(128, *block_.window / 2);
    keys = std::min(s, rows + (block_.causal ? 1 : 2) * *block_.window);
  }
  return std::clamp<int64_t>(limit / (masks * keys), 64, std::max<int64_t>(64, rows));
}

/// Returns the keys that any of these steps may attend to by position; at least one.
Interval LocalAttention::keys_of(Interval rows) const {
  const int64_t s = key_.size(2), reach = block_.window.value_or(0) - 1;
  Interval keys = {0, s};
  if (block_.window) keys = {block_.first + rows.lo - reach, block_.first + rows.hi + reach};
  if (block_.causal) keys.hi = block_.first + rows.hi;
  keys = {std::clamp<int64_t>(keys.lo, 0, s - 1), std::clamp<int64_t>(keys.hi, 1, s)};
  return {std::min(keys.lo, keys.hi - 1), keys.hi};
}

/// Returns the mask of keys that these steps may attend to, (n or 1, heads or 1, steps, keys);
/// undefined: all.
at::Tensor LocalAttention::allowed(Interval rows, Interval keys) const {
  at::Tensor allowed;
  if (block_.causal || block_.window) {
    // The distance of step i from key j is i - j + offset.
    const int64_t offset = block_.first + rows.lo - keys.lo;
    allowed = at::ones({1, 1, rows.size(), keys.size()}, query_.options().dtype(at::kBool));
    if (block_.causal) allowed.tril_(offset);
    if (block_.window) {
      allowed.triu_(offset - *block_.window + 1).tril_(offset + *block_.window - 1);
    }
  }
  if (keys_.defined()) allowed = combine_masks(allowed, narrow_axis(keys_, 3, keys));
  if (!pairs_.defined()) return allowed;
  return combine_masks(allowed,
                       pairs_.narrow(2, rows.lo, rows.size()).narrow(3, keys.lo, keys.size()));
}

/// Sets the chunk's bias: the numeric masks, and -inf where `allowed` is false (undefined:
/// nowhere).
void LocalAttention::set_bias(Chunk& chunk, const at::Tensor& allowed) const {
  at::Tensor added;
  if (added_.defined()) added = narrow_axis(narrow_axis(added_, 2, chunk.rows), 3, chunk.keys);
  std::vector<int64_t> shape = {1, 1, 1, 1};
  for (const at::Tensor& each : {allowed, added}) {
    if (each.defined()) shape = at::infer_size(shape, each.sizes());
  }
  // Rows are aligned to 16 elements, as CUDA's kernels require.
  const int64_t keys = chunk.keys.size();
  shape.back() = (keys + 15) / 16 * 16;
  at::Tensor bias = at::zeros(shape, query_.options()).narrow(-1, 0, keys);
  if (added.defined()) bias.copy_(added);
  if (allowed.defined()) {
    bias.masked_fill_(allowed.logical_not(), -std::numeric_limits<double>::infinity());
  }
  chunk.call.bias = bias.expand({query_.size(0), query_.size(1), chunk.rows.size(), keys});
}

/// Returns all steps as one chunk; requires is_plain().
LocalAttention::Chunk LocalAttention::all_steps() const {
  const int64_t t = query_.size(2), s = key_.size(2);
  Chunk chunk{{query_, key_, value_, block_.scale, block_.causal, {}, block_.value_is_sharded},
              {0, t},
              {0, s}};
  if (keys_.defined()) {
    set_bias(chunk, keys_);
    at::Tensor any = keys_.any(-1, true);
    if (block_.causal) {
      const at::Tensor last = at::arange(t, keys_.options().dtype(at::kLong)).clamp_max(s - 1);
      // A mask that is the same for all steps may have extent 1 along the keys, too.
      const at::Tensor each = keys_.expand({-1, -1, -1, s});
      any = each.cumsum(-1).index_select(-1, last).gt(0).transpose(-1, -2);
    }
    chunk.fully_masked = masked_out(combine_masks(any, rows_));
  } else if (rows_.defined()) {
    chunk.fully_masked = masked_out(rows_);
  }
  return chunk;
}

LocalAttention::Chunk LocalAttention::chunk(Interval rows) const {
  const Interval keys = keys_of(rows);
  const auto of_keys = [&](const at::Tensor& x) { return x.narrow(2, keys.lo, keys.size()); };
  Chunk chunk{{rows_of(query_, rows), of_keys(key_), of_keys(value_), block_.scale}, rows, keys};
  chunk.call.value_is_sharded = block_.value_is_sharded;
  const at::Tensor all = allowed(rows, keys);
  set_bias(chunk, all);
  chunk.fully_masked = fully_masked_among(rows, all);
  return chunk;
}

at::Tensor LocalAttention::fully_masked_among(Interval rows, const at::Tensor& allowed) const {
  if (!allowed.defined()) return rows_.defined() ? masked_out(rows_of(rows_, rows)) : at::Tensor();
  const at::Tensor any = allowed.any(-1, true);
  return masked_out(rows_.defined() ? combine_masks(any, rows_of(rows_, rows)) : any);
}

at::Tensor LocalAttention::fully_masked() const {
  if (block_.masks.empty()) return {};
  const int64_t t = query_.size(2), rows = chunk_rows();
  at::Tensor all;
  for (int64_t at = 0; at < t; at += rows) {
    const Interval some = {at, std::min(at + rows, t)}, keys = keys_of(some);
    const at::Tensor one = fully_masked_among(some, allowed(some, keys));
    if (!one.defined()) continue;
    if (!all.defined()) all = at::zeros({query_.size(0), query_.size(1), t, 1}, one.options());
    rows_of(all, some).copy_(one);
  }
  return all;
}

/// Returns whether kernels need no bias, except for a mask of keys.
bool LocalAttention::is_plain() const {
  const bool by_kernel = !block_.causal || block_.first <= 0;
  return by_kernel && !block_.window && !pairs_.defined() && !added_.defined();
}

void LocalAttention::for_each_chunk(const std::function<void(const Chunk&)>& visit) const {
  if (is_plain()) {
    visit(all_steps());
    return;
  }
  const int64_t t = query_.size(2), rows = chunk_rows();
  for (int64_t at = 0; at < t; at += rows) visit(chunk({at, std::min(at + rows, t)}));
}

AttentionResult LocalAttention::forward() const {
  if (has_groups() && !supports_groups()) return forward_by_groups();
  const int64_t t = query_.size(2), heads = query_.size(1);
  at::Tensor y, lse;
  for_each_chunk([&](const Chunk& chunk) {
    auto [chunk_y, chunk_lse] = chunk.call.forward();
    if (chunk.fully_masked.defined()) {
      // Steps that may attend to nothing get the mean of the values, as if all scores were 0; with
      // `zeros` or `partial` they get 0.
      const bool zeros = block_.zeros || block_.partial;
      at::Tensor mean = zeros ? at::zeros({}, chunk_y.options()) : value_.mean(2, true);
      if (!zeros && has_groups()) mean = mean.repeat_interleave(block_.group, 1);
      chunk_y = at::where(chunk.fully_masked, mean, chunk_y);
      chunk_lse = chunk_lse.masked_fill(chunk.fully_masked.squeeze(-1),
                                        block_.partial ? -std::numeric_limits<double>::infinity()
                                                       : std::log(double(key_.size(2))));
    }
    if (chunk.rows.size() == t) {
      y = chunk_y;
      lse = chunk_lse;
      return;
    }
    if (!y.defined()) {
      y = new_block(chunk_y.options(), {chunk_y.size(0), heads, t, chunk_y.size(3)});
      lse = at::empty({chunk_y.size(0), heads, t}, chunk_lse.options());
    }
    rows_of(y, chunk.rows).copy_(chunk_y);
    rows_of(lse, chunk.rows).copy_(chunk_lse);
  });
  return {y, lse};
}

Tensors LocalAttention::backward(const at::Tensor& dy, const at::Tensor& y,
                                 const at::Tensor& lse) const {
  Shape extents = query_.sizes().slice(0, 3).vec();
  check_extents(lse, extents);
  extents.push_back(value_.size(3));
  check_extents(dy, extents);
  check_extents(y, extents);
  if (has_groups()) return backward_by_groups(dy, y, lse);
  const int64_t t = query_.size(2), s = key_.size(2);
  Tensors all;
  for_each_chunk([&](const Chunk& chunk) {
    at::Tensor grad = rows_of(dy, chunk.rows), mean_grad;
    if (chunk.fully_masked.defined()) {
      if (!block_.zeros && !block_.partial) {
        mean_grad = grad.masked_fill(chunk.fully_masked.logical_not(), 0).sum(2, true).div_(s);
      }
      grad = grad.masked_fill(chunk.fully_masked, 0);
    }
    Tensors grads =
        chunk.call.backward(grad, rows_of(y, chunk.rows), rows_of(lse, chunk.rows).contiguous());
    if (chunk.rows.size() == t && chunk.keys.size() == s) {
      all = std::move(grads);
    } else {
      if (all.empty()) {
        all = new_gradients(accumulate_options());
        for (size_t i : {1, 2}) all[i].zero_();
      }
      rows_of(all[0], chunk.rows).copy_(grads[0]);
      for (size_t i : {1, 2}) rows_of(all[i], chunk.keys).add_(grads[i]);
    }
    if (mean_grad.defined()) all[2].add_(mean_grad);
  });
  for (size_t i : {1, 2}) all[i] = all[i].to(key_.scalar_type());
  return all;
}

at::Tensor LocalAttention::mask_gradient(const at::Tensor& mask, const at::Tensor& dy,
                                         const at::Tensor& y, const at::Tensor& lse) const {
  const at::Tensor all = at::zeros(mask.sizes(), accumulate_options());
  for (int64_t head = 0; has_groups() && head < key_.size(1); ++head) {
    const Interval own = heads_of(head);
    const auto of_own = [&](const at::Tensor& x) { return x.narrow(1, own.lo, own.size()); };
    narrow_axis(all, 1, own)
        .add_(for_shared_head(head).mask_gradient(narrow_axis(mask, 1, own), of_own(dy), of_own(y),
                                                  of_own(lse)));
  }
  if (has_groups()) return all;
  for_each_chunk([&](const Chunk& chunk) {
    at::Tensor grad = rows_of(dy, chunk.rows);
    if (chunk.fully_masked.defined()) grad = grad.masked_fill(chunk.fully_masked, 0);
    const at::Tensor scores =
        chunk.call.softmax_and_grad(grad, rows_of(y, chunk.rows), rows_of(lse, chunk.rows)).second;
    const at::Tensor own = narrow_axis(narrow_axis(all, 2, chunk.rows), 3, chunk.keys);
    own.add_(scores.sum_to_size(own.sizes()));
  });
  return all;
}

}  // namespace tessera
