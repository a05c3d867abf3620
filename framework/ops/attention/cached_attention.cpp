#include <tessera/framework/ops/attention/cached_attention.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/ops/attention/internal/attention_terms.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

namespace tessera {

using namespace detail;

namespace {

/// The cached keys that the steps of one block may attend to.
struct VisibleKeys {
  std::vector<int64_t> first;  ///< each row's position of the block's first step
  Interval keys;               ///< the keys that any of the steps may attend to

  VisibleKeys(const LocalArgs& in, const std::optional<int64_t>& window) {
    const Interval rows = in.range(0, 0), steps = in.range(0, 1);
    const int64_t all = in.spec(0).shape[1], capacity = in.spec(1).shape[1];
    const at::Tensor positions = in[3].cpu().contiguous();
    const int64_t* const of_rows = positions.const_data_ptr<int64_t>();
    for (int64_t row = rows.lo; row < rows.hi; ++row) {
      const int64_t position = of_rows[row];
      if (position < 0 || position > capacity - all) {
        throw ShapeError("cached_attention",
                         str("the steps of a row lie in [0, ", capacity, "), the cache's"),
                         str(all, " from step ", position, " on in row ", row),
                         "pass keys and values with more steps");
      }
      first.push_back(position + steps.lo);
    }
    const auto [least, most] = std::minmax_element(first.begin(), first.end());
    keys = {window ? std::max<int64_t>(0, *least - *window + 1) : 0, *most + steps.size()};
  }

  bool equal() const {
    return std::adjacent_find(first.begin(), first.end(), std::not_equal_to<>()) == first.end();
  }

  /// Returns which keys each step may attend to, (rows, 1, T, keys).
  at::Tensor mask(int64_t steps, const std::optional<int64_t>& window) const {
    const at::Tensor step = at::tensor(first).unsqueeze(-1) + at::arange(steps);
    const at::Tensor ahead = step.unsqueeze(-1) - at::arange(keys.lo, keys.hi);
    at::Tensor near = ahead.ge(0);
    if (window) near = near.logical_and(ahead.lt(*window));
    return near.unsqueeze(1);
  }
};

/// Inputs: query, keys, values, positions, masks. `causal` and `zeros` are always meant.
struct CachedAttentionOp : AttentionTerms {
  static constexpr std::string_view name = "cached_attention";
  static constexpr size_t first_mask = 4;

  Specs infer(const Specs& in) const {
    check_index_dtype(name, "positions", in[3]);
    Specs others = in;
    others.erase(others.begin() + 3);
    const Specs out = infer_values(name, others);
    if (in[0].rank() != 4 || in[3].shape != Shape{in[0].shape[0]}) {
      throw ShapeError(std::string(name), "query is (batch, T, heads, dim), and positions (batch)",
                       to_string(in[0].shape) + " and " + to_string(in[3].shape),
                       "give each row a position");
    }
    for (size_t i = first_mask; i < in.size(); ++i) {
      if (in[i].dtype == at::kBool) continue;
      throw ConfigError(std::string(name), "masks are bool", dtype_name(in[i].dtype), "cast them");
    }
    return {out[0]};
  }
  Rule rule(const Specs& in) const {
    return Rule::parse(term(in, "t", "!d") + " , " + term(in, "!s", "!d") + " , " +
                       term(in, "s", "e") + " , ." + masks(in, first_mask) + " -> " +
                       term(in, "t", "e"));
  }
  Tensors forward(const LocalArgs& in) const {
    const VisibleKeys visible(in, reach);
    const Interval keys = visible.keys;
    const int64_t steps = in[0].size(1);
    BlockAttention block = block_attention(in);
    block.zeros = true;
    block.window = {};
    for (at::Tensor& mask : masks_of(in, first_mask)) {
      block.masks.push_back(mask.size(3) == 1 ? mask : mask.narrow(3, keys.lo, keys.size()));
    }
    if (!visible.equal()) {
      block.masks.push_back(moved_to(visible.mask(steps, reach), in[0].device()));
    } else if (steps > 1) {
      block.causal = true;
      block.window = reach;
      block.first = visible.first[0] - keys.lo;
    }
    const auto seen = [&](size_t input) {
      return heads_first(in[input].narrow(1, keys.lo, keys.size()));
    };
    const LocalAttention local(heads_first(in[0]), seen(1), seen(2), block);
    return {attention_outputs(local.forward(), in[0])[0]};
  }
  static Samples<CachedAttentionOp> samples() {
    const auto of = [](const Shape& q, const Shape& k, int64_t positions,
                       const AttentionTerms& how = {}, std::vector<SampleInput> more = {},
                       at::ScalarType dtype = at::kDouble) {
      std::vector<SampleInput> in = {
          {q, dtype}, {k, dtype}, {k, dtype}, {{q[0]}, at::kLong, 0, double(positions)}};
      in.insert(in.end(), more.begin(), more.end());
      return Sample<CachedAttentionOp>{in, {how}};
    };
    const AttentionTerms window{.reach = 2};
    return {of({2, 1, 2, 2}, {2, 5, 2, 2}, 5),
            of({3, 2, 2, 2}, {3, 6, 2, 2}, 5),
            of({1, 3, 2, 2}, {1, 5, 2, 2}, 3, window),
            of({2, 1, 6, 2}, {2, 5, 3, 2}, 5, window),
            of({2, 2, 4, 1}, {2, 4, 2, 1}, 3, {.scale = 0.7}, {{{2, 1, 1, 4}, at::kBool, 0, 2}}),
            of({2, 1, 2, 2}, {2, 4, 2, 2}, 4, {}, {{{2, 1, 1, 1}, at::kBool, 0, 2}}, at::kFloat)};
  }
};

TESSERA_REGISTER_OP(CachedAttentionOp);

}  // namespace

DTensor ops::cached_attention(const DTensor& query, const DTensor& keys, const DTensor& values,
                              const DTensor& positions, const CachedAttentionOptions& options) {
  std::vector<DTensor> in = {query, keys, values, to_int64_indices(positions)};
  in.insert(in.end(), options.masks.begin(), options.masks.end());
  return run_op(CachedAttentionOp{{.scale = options.scale, .reach = options.window}}, in);
}

}  // namespace tessera
