#include <tessera/framework/comm/internal/tree_reduce.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/profile.hpp>

namespace tessera::detail {
namespace {

/// Returns the end of the largest subtree from `first` on whose positions, of `count`, are all
/// `held`.
template <class Held>
int64_t subtree_end(int64_t first, int64_t count, const Held& held) {
  int64_t end = first + 1;
  for (int64_t size = 2; first % size == 0; size *= 2) {
    const int64_t wider = std::min(first + size, count);
    while (end < wider && held(end)) ++end;
    if (end < wider) return first + size / 2;
    if (wider == count) return count;
  }
  return end;
}

/// Returns this process's subtrees as intervals of positions.
std::vector<Interval> subtrees_of(const Group& group, int rank) {
  std::vector<Interval> list;
  const auto held = [&](int64_t m) { return group.owner[static_cast<size_t>(m)] == rank; };
  for (int64_t first = 0; first < group.size(); ++first) {
    if (!held(first)) continue;
    list.push_back({first, subtree_end(first, group.size(), held)});
    first = list.back().hi - 1;
  }
  return list;
}

/// Returns the local members' inputs that are defined.
std::vector<TreeAddend> leaves_of(const Group& group, const std::vector<at::Tensor>& inputs) {
  if (inputs.size() != group.local.size()) {
    throw StateError("world_size_invariant", "a reduction has an input for each member",
                     str(inputs.size(), " inputs of ", group.local.size(), " members"),
                     "pass undefined tensors for members without a part");
  }
  std::vector<TreeAddend> leaves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined()) leaves.push_back({group.local[i], inputs[i]});
  }
  return leaves;
}

}  // namespace

at::Tensor tree_reduce(Reduce kind, std::vector<TreeAddend> nodes, at::Tensor out) {
  const ProfileSpan span(SpanKind::aten, "reduce");
  size_t left = nodes.size();
  for (int64_t size = 2; nodes.size() > 1; size *= 2) {
    std::vector<TreeAddend> parents;
    for (TreeAddend& node : nodes) {
      if (parents.empty() || parents.back().position / size != node.position / size) {
        parents.push_back(std::move(node));
        continue;
      }
      TreeAddend& first = parents.back();
      const at::Tensor a = first.value, b = node.value.to(a.device());
      const bool moved = !b.is_same(node.value);
      if (left == 2 && out.defined()) {
        first.value = out;
      } else if (!first.writable) {
        first.value = node.writable || moved ? b : at::empty_like(a);
      }
      reduce_out(kind, first.value, a, b);
      first.writable = true;
      --left;
    }
    nodes = std::move(parents);
  }
  const at::Tensor& result = nodes.front().value;
  if (!out.defined() || result.is_same(out)) return result;
  out.copy_(result);
  return out;
}

std::vector<int64_t> subtree_positions(const Group& group, int rank) {
  std::vector<int64_t> positions;
  for (const Interval& subtree : subtrees_of(group, rank)) positions.push_back(subtree.lo);
  return positions;
}

std::vector<at::Tensor> subtree_reductions(const Group& group, Reduce kind,
                                           const std::vector<at::Tensor>& inputs) {
  const std::vector<TreeAddend> leaves = leaves_of(group, inputs);
  const at::Tensor& like = first_defined(inputs);
  std::vector<at::Tensor> reductions;
  auto next = leaves.begin();
  const int rank = group.owner[static_cast<size_t>(group.local.front())];
  for (const Interval& subtree : subtrees_of(group, rank)) {
    const auto begin = next;
    while (next != leaves.end() && next->position < subtree.hi) ++next;
    reductions.push_back(begin == next ? tree_identity(kind, like.sizes(), like.options())
                                       : tree_reduce(kind, {begin, next}));
  }
  return reductions;
}

at::Tensor reduce_inputs(const Group& group, Reduce kind, const std::vector<at::Tensor>& inputs) {
  return group.tree ? tree_reduce(kind, leaves_of(group, inputs)) : reduce_all(kind, inputs);
}

at::Tensor tree_identity(Reduce kind, at::IntArrayRef shape, at::TensorOptions options) {
  const bool floating = at::isFloatingType(c10::typeMetaToScalarType(options.dtype()));
  return kind == Reduce::sum && floating ? at::full(shape, -0.0, options)
                                         : reduce_identity(kind, shape, options);
}

const at::Tensor& first_defined(const std::vector<at::Tensor>& inputs) {
  const auto defined = std::find_if(inputs.begin(), inputs.end(),
                                    [](const at::Tensor& input) { return input.defined(); });
  return defined == inputs.end() ? inputs.front() : *defined;
}

}  // namespace tessera::detail
