#include <tessera/framework/ops/shape.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/reshape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Returns the layouts of a relayout; none means that all are replicated.
std::vector<Layout> targets_of(const std::vector<DTensor>& in, std::vector<Layout> layouts) {
  for (size_t i = layouts.size(); i < in.size(); ++i) {
    layouts.push_back(Layout::replicated(in[i].mesh(), in[i].rank()));
  }
  return layouts;
}

/// Reshards values, each to a layout.
struct RelayoutOp {
  static constexpr std::string_view name = "relayout";
  static constexpr bool keeps_parameter = true;
  static constexpr bool only_moves = true;
  std::vector<Layout> layouts = {};
  bool reshard_after_forward = false;
  auto attributes() const { return std::tie(layouts, reshard_after_forward); }
  bool rematerialized() const { return reshard_after_forward; }
  std::vector<DTensor> run(const std::vector<DTensor>& in) const {
    std::vector<DTensor> results;
    for (const DTensor& moved : relayout_values(in, targets_of(in, layouts))) {
      results.emplace_back(moved.sharding(), moved.blocks());
    }
    return results;
  }
  static constexpr Saves saves = nothing_saved;
  // The tape passes dy on, and reshards it to the input's layout when it is used.
  Grads gradient(const Saved&, const Cotangents& dy, Needs) const { return dy; }
  static Samples<RelayoutOp> samples() {
    return {{{{{3, 4}}}, RelayoutOp()}, {{{{}}}, RelayoutOp()}, {{{{3, 4}}, {{4}}}, RelayoutOp()}};
  }
};

/// Copies a value to another mesh; an undefined layout means replicated on its own mesh.
struct CopyToMeshOp {
  static constexpr std::string_view name = "copy_to_mesh";
  Layout layout;
  auto attributes() const { return std::tie(layout); }
  DTensor run(const std::vector<DTensor>& in) const {
    const Layout target =
        layout.defined() ? layout : Layout::replicated(in[0].mesh(), in[0].rank());
    const DTensor copy = copy_to_mesh_value(in[0], target);
    return DTensor(copy.sharding(), copy.blocks());
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {ops::copy_to_mesh(dy[0], saved.sharding(0).layout.resolved())};
  }
  static Samples<CopyToMeshOp> samples() { return {{{{{3, 4}}}, CopyToMeshOp()}}; }
};

struct StopGradientOp {
  static constexpr std::string_view name = "stop_gradient";
  static constexpr bool stops_gradient = true;
  auto attributes() const { return std::tuple<>(); }
  DTensor run(const std::vector<DTensor>& in) const {
    return DTensor(in[0].sharding(), in[0].blocks());
  }
  static Samples<StopGradientOp> samples() { return {{{{{3, 4}}}}}; }
};

struct ReshapeOp {
  static constexpr std::string_view name = "reshape";
  static constexpr bool keeps_parameter = true;
  Shape shape;
  auto attributes() const { return std::tie(shape); }
  DTensor run(const std::vector<DTensor>& in) const {
    const DTensor y = reshape_value(in[0], shape);
    return DTensor(y.sharding(), y.blocks());
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {ops::reshape(dy[0], saved.shape(0))};
  }
  static Samples<ReshapeOp> samples() {
    return {{{{{4, 6}}}, {{24}}},     {{{{5, 3, 2}}}, {{5, 6}}}, {{{{7, 2}}}, {{2, 7}}},
            {{{{2, 3, 3}}}, {{18}}},  {{{{12}}}, {{3, 4}}},      {{{{1, 4, 1}}}, {{4}}},
            {{{{3, 2}}}, {{3, 1, 2}}}};
  }
};

struct TransposeOp {
  static constexpr std::string_view name = "transpose";
  static constexpr bool keeps_parameter = true;
  std::vector<int64_t> axes;
  auto attributes() const { return std::tie(axes); }
  Specs infer(const Specs& in) const {
    Shape shape;
    for (int64_t a : axes) shape.push_back(in[0].shape[size_t(a)]);
    return {{shape, in[0].dtype}};
  }
  Rule rule(const Specs& in) const {
    Rule rule = broadcast_rule(in);
    for (size_t a = 0; a < axes.size(); ++a) rule.out[0][a] = int(axes[a]);
    return rule.passing(Passes::all);
  }
  Tensors forward(const LocalArgs& in) const { return {in[0].permute(axes)}; }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved&, const Cotangents& dy, Needs) const {
    std::vector<int64_t> back(axes.size());
    for (size_t a = 0; a < axes.size(); ++a) back[size_t(axes[a])] = int64_t(a);
    return {ops::transpose(dy[0], back)};
  }
  static Samples<TransposeOp> samples() {
    return {{{{{3, 4}}}, {{1, 0}}}, {{{{2, 3, 4}}}, {{2, 0, 1}}}};
  }
};

struct BroadcastToOp {
  static constexpr std::string_view name = "broadcast_to";
  Shape shape;
  auto attributes() const { return std::tie(shape); }
  Specs infer(const Specs& in) const {
    if (broadcast_shape(name, {in[0], {shape}}) != shape) {
      throw ShapeError("broadcast_to", "the shape broadcasts to " + to_string(shape),
                       to_string(in[0].shape), "reshape it first");
    }
    return {{shape, in[0].dtype}};
  }
  Rule rule(const Specs& in) const {
    Rule rule = broadcast_rule({in[0], {shape}});
    rule.in.pop_back();
    return rule.passing(Passes::all);
  }
  Tensors forward(const LocalArgs& in) const {
    Shape local;
    for (size_t a = 0; a < shape.size(); ++a) local.push_back(in.out_range(int64_t(a)).size());
    return {in[0].expand(local)};
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {sum_to(dy[0], saved.shape(0))};
  }
  static Samples<BroadcastToOp> samples() {
    return {{{{{3, 1}}}, {{3, 4}}}, {{{{4}}}, {{2, 3, 4}}}, {{{{}}}, {{3}}}};
  }
};

TESSERA_REGISTER_OP(RelayoutOp);
TESSERA_REGISTER_OP(CopyToMeshOp);
TESSERA_REGISTER_OP(StopGradientOp);
TESSERA_REGISTER_OP(ReshapeOp);
TESSERA_REGISTER_OP(TransposeOp);
TESSERA_REGISTER_OP(BroadcastToOp);

Shape complete(const DTensor& x, Shape shape) {
  int64_t known = 1, open = -1;
  for (size_t a = 0; a < shape.size(); ++a) {
    if (shape[a] >= 0) {
      known *= shape[a];
    } else if (shape[a] == -1 && open < 0) {
      open = int64_t(a);
    } else {
      throw ShapeError("reshape", "extents are at least 0, one may be -1", to_string(shape),
                       "correct the new shape");
    }
  }
  if (open >= 0) {
    if (known == 0 || x.numel() % known != 0) {
      throw ShapeError("reshape", str("the product of the other extents must divide ", x.numel()),
                       to_string(shape), "correct the new shape");
    }
    shape[size_t(open)] = x.numel() / known;
  }
  return shape;
}

}  // namespace

namespace ops {

DTensor relayout(const DTensor& x, const Layout& layout, bool reshard_after_forward) {
  std::vector<Layout> layouts;
  if (layout.defined()) layouts.push_back(abstract_layout(layout));
  return run_op(RelayoutOp{std::move(layouts), reshard_after_forward}, {x});
}

std::vector<DTensor> relayout(const std::vector<DTensor>& values,
                              const std::vector<Layout>& layouts, bool reshard_after_forward) {
  if (values.size() != layouts.size()) {
    throw ConfigError("relayout", str("a layout for each of ", values.size(), " values"),
                      str(layouts.size(), " layouts"), "give each value its layout");
  }
  if (values.empty()) return {};
  std::vector<Layout> targets;
  for (const Layout& layout : layouts) targets.push_back(abstract_layout(layout));
  const RelayoutOp op{std::move(targets), reshard_after_forward};
  return dispatch(op_info<RelayoutOp>(), &op, attribute_hash(op), values);
}

DTensor relayout_like(const DTensor& x, const DTensor& like) {
  const Layout layout = fetch_layout(like);
  return layout.mesh() == x.mesh() ? relayout(x, layout) : copy_to_mesh(x, layout);
}

DTensor copy_to_mesh(const DTensor& x, const Layout& layout) {
  return run_op(CopyToMeshOp{layout}, {x});
}

DTensor stop_gradient(const DTensor& x) { return run_op(StopGradientOp{}, {x}); }

DTensor reshape(const DTensor& x, const Shape& shape) {
  const Shape target = complete(x, shape);
  return x.shape() == target ? x : run_op(ReshapeOp{target}, {x});
}

DTensor flatten(const DTensor& x, int64_t first) {
  if (first < 0 || first > x.rank()) {
    throw ShapeError("flatten", str("the first axis to merge lies in [0, ", x.rank(), "]"),
                     str(first), "");
  }
  Shape shape(x.shape().begin(), x.shape().begin() + first);
  int64_t rest = 1;
  for (size_t a = size_t(first); a < x.shape().size(); ++a) rest *= x.shape()[a];
  shape.push_back(rest);
  return reshape(x, shape);
}

DTensor expand_dims(const DTensor& x, int64_t axis) {
  Shape shape = x.shape();
  shape.insert(shape.begin() + normalize_axis(axis, x.rank() + 1, "expand_dims"), 1);
  return reshape(x, shape);
}

DTensor squeeze(const DTensor& x, const std::vector<int64_t>& axes) {
  std::vector<bool> drop(x.shape().size());
  for (int64_t axis : axes) {
    const size_t a = size_t(normalize_axis(axis, x.rank(), "squeeze"));
    if (x.shape()[a] != 1) {
      throw ShapeError("squeeze", str("axis ", a, " has extent 1"), to_string(x.shape()),
                       "name an axis of extent 1");
    }
    drop[a] = true;
  }
  Shape shape;
  for (size_t a = 0; a < drop.size(); ++a) {
    if (!drop[a]) shape.push_back(x.shape()[a]);
  }
  return reshape(x, shape);
}

DTensor transpose(const DTensor& x, const std::vector<int64_t>& axes) {
  std::vector<int64_t> order;
  std::vector<bool> seen(x.shape().size());
  for (int64_t a = x.rank(); axes.empty() && a-- > 0;) order.push_back(a);
  for (int64_t axis : axes) {
    order.push_back(normalize_axis(axis, x.rank(), "transpose"));
    seen[size_t(order.back())] = true;
  }
  const bool all_named = axes.empty() || std::find(seen.begin(), seen.end(), false) == seen.end();
  if (!all_named || order.size() != x.shape().size()) {
    throw ShapeError("transpose", str("every axis of ", to_string(x.shape()), " is named once"),
                     to_string(axes), "list each axis once");
  }
  return run_op(TransposeOp{order}, {x});
}

DTensor broadcast_to(const DTensor& x, const Shape& shape) {
  return x.shape() == shape ? x : run_op(BroadcastToOp{shape}, {x});
}

DTensor tile(const DTensor& x, const std::vector<int64_t>& repeats) {
  if (repeats.size() != x.shape().size()) {
    throw ShapeError("tile", str("one count for each of ", x.rank(), " axes"),
                     str(repeats.size(), " counts"), "");
  }
  Shape apart, repeated, joined;
  for (size_t a = 0; a < repeats.size(); ++a) {
    const int64_t n = x.shape()[a];
    if (repeats[a] < 0) {
      throw ShapeError("tile", "counts are at least 0", to_string(repeats), "");
    }
    apart.insert(apart.end(), {1, n});
    repeated.insert(repeated.end(), {repeats[a], n});
    joined.push_back(repeats[a] * n);
  }
  return reshape(broadcast_to(reshape(x, apart), repeated), joined);
}

}  // namespace ops
}  // namespace tessera
