#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <tessera/framework/base/internal/hash.hpp>
#include <tessera/framework/ops/engine/rule.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Results of one block, one per output.
using Tensors = c10::SmallVector<at::Tensor, 1>;

/// One block's view of an operation's inputs.
class LocalArgs {
 public:
  LocalArgs(std::span<const at::Tensor> tensors, std::span<const std::vector<Interval>> ranges,
            std::span<const std::vector<Interval>> out_ranges, const Specs& specs)
      : tensors_(tensors), ranges_(ranges), out_ranges_(out_ranges), specs_(specs) {}
  const at::Tensor& operator[](size_t input) const { return tensors_[input]; }
  size_t size() const { return tensors_.size(); }
  std::span<const at::Tensor> all() const { return tensors_; }
  /// Returns the global interval that this block of an input covers along an axis.
  Interval range(size_t input, int64_t axis) const { return ranges_[input][size_t(axis)]; }
  const std::vector<Interval>& ranges(size_t input) const { return ranges_[input]; }
  size_t out_rank() const { return out_ranges_[0].size(); }
  /// Returns the global interval of the first output's block along an axis.
  Interval out_range(int64_t axis) const { return out_ranges_[0][size_t(axis)]; }
  /// Global shape and dtype of an input.
  const Spec& spec(size_t input) const { return specs_[input]; }

 private:
  std::span<const at::Tensor> tensors_;
  std::span<const std::vector<Interval>> ranges_;
  std::span<const std::vector<Interval>> out_ranges_;
  const Specs& specs_;
};

/// Bit masks of the inputs and outputs that a gradient reads.
struct Saves {
  uint32_t in = 0;
  uint32_t out = 0;
};
template <class... I>
constexpr Saves inputs(I... i) {
  return {((1u << i) | ... | 0u), 0};
}
constexpr Saves outputs(uint32_t o) { return {0, 1u << o}; }
constexpr Saves nothing_saved{};

/// The inputs and outputs that the forward pass saved for a gradient.
class Saved {
 public:
  /// `rematerialize(i)` computes `in[i]`, or `out[i - size()]`, if possible, when an undefined one
  /// is read; it must outlive this object.
  Saved(const std::vector<DTensor>& in, const std::vector<DTensor>& out,
        const std::vector<ShardingPtr>& shardings, c10::function_ref<void(size_t)> rematerialize)
      : in_(in), out_(out), shardings_(shardings), rematerialize_(rematerialize) {}
  size_t size() const { return shardings_.size(); }
  const DTensor& in(size_t i) const {
    if (!in_[i].defined()) rematerialize_(i);
    return in_[i];
  }
  const DTensor& out(size_t o = 0) const {
    if (!out_[o].defined()) rematerialize_(shardings_.size() + o);
    return out_[o];
  }
  /// Shape, dtype and layout of an input, saved or not.
  const Sharding& sharding(size_t i) const { return *shardings_[i]; }
  const Shape& shape(size_t i) const { return shardings_[i]->shape; }

 private:
  const std::vector<DTensor>& in_;
  const std::vector<DTensor>& out_;
  const std::vector<ShardingPtr>& shardings_;
  c10::function_ref<void(size_t)> rematerialize_;
};

/// Gradients of the outputs; undefined for an output that the target does not depend on.
using Cotangents = std::vector<DTensor>;
/// Gradients of the inputs; undefined where none is needed.
using Grads = std::vector<DTensor>;

/// The inputs that need a gradient.
struct Needs {
  uint32_t mask = 0;
  bool operator[](size_t i) const { return mask >> i & 1; }
};

/// An input of a sample: random numbers in [lo, hi), integers for an integer dtype. Values of a
/// `distinct` input differ by at least a hundredth of the range, so that maxima do not tie.
struct SampleInput {
  Shape shape;
  at::ScalarType dtype = at::kDouble;
  double lo = -1;
  double hi = 1;
  bool distinct = false;
  bool differentiable = true;  ///< whether this floating input has a gradient
};

/// One case that the oracle and the benchmark run an operation on.
template <class Op>
struct Sample {
  std::vector<SampleInput> inputs;
  Op op = Op();
};
template <class Op>
using Samples = std::vector<Sample<Op>>;

template <class Op>
concept HasGradient = requires(const Op& op, const Saved& saved, const Cotangents& dy, Needs n) {
  { Op::saves } -> std::convertible_to<Saves>;
  { op.gradient(saved, dy, n) } -> std::same_as<Grads>;
};

/// An operation on blocks. Its attributes are members, listed by attributes(); rule and infer see
/// global shapes only; forward is plain ATen on one block, which is never empty.
template <class Op>
concept BlockOp = requires(const Op& op, const Specs& in, const LocalArgs& args) {
  { op.rule(in) } -> std::same_as<Rule>;
  { op.infer(in) } -> std::same_as<Specs>;
  { op.forward(args) } -> std::same_as<Tensors>;
};

/// This process's blocks of an operation; see block_grid.hpp.
struct BlockGrid;

/// An operation on blocks that communicates while it computes: forward_all() gets all blocks of
/// this process at once, and is called on processes without blocks, too. `forward` is the
/// single-device computation.
template <class Op>
concept CommunicatingOp = requires(const Op& op, const BlockGrid& grid) {
  { op.forward_all(grid) } -> std::same_as<std::vector<Tensors>>;
};

/// An operation that moves blocks itself, instead of by rule and forward: relayout, reshape. With
/// several results, each is one input, moved.
template <class Op>
concept MovingOp = requires(const Op& op, const std::vector<DTensor>& in) {
  { op.run(in) } -> std::same_as<std::vector<DTensor>>;
}
|| requires(const Op& op, const std::vector<DTensor>& in) {
  { op.run(in) } -> std::same_as<DTensor>;
};

template <class Op>
concept Operation = (BlockOp<Op> || MovingOp<Op>)&&requires(const Op& op) {
  { Op::name } -> std::convertible_to<std::string_view>;
  op.attributes();
  { Op::samples() } -> std::same_as<Samples<Op>>;
};

/// An operation with window axes: window() returns the global interval of an input that an output
/// interval reads.
template <class Op>
concept HasWindow = requires(const Op& op, const Specs& in, Interval out) {
  { op.window(size_t{}, int64_t{}, out, in) } -> std::same_as<Interval>;
};

struct AnySample {
  std::vector<SampleInput> inputs;
  std::shared_ptr<const void> op;
};

/// A type-erased operation, as dispatch, tape, oracle, benchmark and docs use it.
struct OpInfo {
  std::string_view name;
  bool differentiable = false;
  bool moves_blocks = false;  ///< a MovingOp: has run() instead of rule and forward
  bool windowed = false;
  bool stops_gradient = false;   ///< its derivative is zero wherever it exists
  bool keeps_parameter = false;  ///< a parameter's result is a parameter: cast, transpose, reshape
  bool only_moves = false;       ///< changes the layouts only, of the gradients as well
  bool only_casts = false;       ///< changes the dtype only, of the gradient as well
  bool takes_rows = false;       ///< forward() reads blocks of row-sparse inputs as they are
  Saves saves;
  /// Whether a tape saves the input instead of the result and rematerializes the result for the
  /// gradients that read it. Null: never.
  bool (*rematerialized)(const void*) = nullptr;
  Rule (*rule)(const void*, const Specs&) = nullptr;
  Specs (*infer)(const void*, const Specs&) = nullptr;
  Tensors (*forward)(const void*, const LocalArgs&) = nullptr;
  std::vector<Tensors> (*forward_all)(const void*, const BlockGrid&) = nullptr;
  std::vector<DTensor> (*run)(const void*, const std::vector<DTensor>&) = nullptr;
  Interval (*window)(const void*, size_t, int64_t, Interval, const Specs&) = nullptr;
  double (*fill)(const void*) = nullptr;
  Grads (*gradient)(const void*, const Saved&, const Cotangents&, Needs) = nullptr;
  bool (*equal)(const void*, const void*) = nullptr;
  std::shared_ptr<const void> (*copy)(const void*) = nullptr;
  std::vector<AnySample> (*samples)() = nullptr;
};

/// Returns all registered operations, sorted by name.
std::vector<const OpInfo*> op_registry();
/// Returns the registered operation of this name, or null.
const OpInfo* find_op(std::string_view name);
/// Registers an operation; called by TESSERA_REGISTER_OP. Throws StateError for a name in use.
bool register_op(const OpInfo& info);

template <class T>
size_t hash_attribute(const T& value) {
  if constexpr (requires { value.begin(); }) {
    size_t seed = value.size();
    for (const auto& item : value) seed = mix(seed, hash_attribute(item));
    return seed;
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<size_t>(value);
  } else if constexpr (requires { value.has_value(); }) {
    return value ? hash_attribute(*value) + 1 : 0;
  } else if constexpr (requires { value.hash(); }) {
    return value.hash();
  } else {
    return std::hash<T>{}(value);
  }
}

template <class Op>
OpInfo make_info() {
  OpInfo info;
  info.name = Op::name;
  info.moves_blocks = MovingOp<Op>;
  info.differentiable = HasGradient<Op>;
  info.windowed = HasWindow<Op>;
  if constexpr (requires { Op::stops_gradient; }) info.stops_gradient = Op::stops_gradient;
  if constexpr (requires { Op::keeps_parameter; }) info.keeps_parameter = Op::keeps_parameter;
  if constexpr (requires { Op::only_moves; }) info.only_moves = Op::only_moves;
  if constexpr (requires { Op::only_casts; }) info.only_casts = Op::only_casts;
  if constexpr (requires { Op::takes_rows; }) info.takes_rows = Op::takes_rows;
  if constexpr (requires(const Op& op) { op.rematerialized(); }) {
    info.rematerialized = [](const void* op) {
      return static_cast<const Op*>(op)->rematerialized();
    };
  }
  if constexpr (BlockOp<Op>) {
    info.rule = [](const void* op, const Specs& in) {
      return static_cast<const Op*>(op)->rule(in);
    };
    info.infer = [](const void* op, const Specs& in) {
      return static_cast<const Op*>(op)->infer(in);
    };
    info.forward = [](const void* op, const LocalArgs& args) {
      return static_cast<const Op*>(op)->forward(args);
    };
  } else {
    info.run = [](const void* op, const std::vector<DTensor>& in) -> std::vector<DTensor> {
      return {static_cast<const Op*>(op)->run(in)};
    };
  }
  if constexpr (CommunicatingOp<Op>) {
    info.forward_all = [](const void* op, const BlockGrid& grid) {
      return static_cast<const Op*>(op)->forward_all(grid);
    };
  }
  if constexpr (HasWindow<Op>) {
    info.window = [](const void* op, size_t i, int64_t axis, Interval out, const Specs& in) {
      return static_cast<const Op*>(op)->window(i, axis, out, in);
    };
    info.fill = [](const void* op) -> double {
      if constexpr (requires(const Op& o) { o.fill(); }) {
        return static_cast<const Op*>(op)->fill();
      } else {
        return 0;
      }
    };
  }
  if constexpr (HasGradient<Op>) {
    info.saves = Op::saves;
    info.gradient = [](const void* op, const Saved& saved, const Cotangents& dy, Needs needs) {
      return static_cast<const Op*>(op)->gradient(saved, dy, needs);
    };
  }
  info.equal = [](const void* a, const void* b) {
    return static_cast<const Op*>(a)->attributes() == static_cast<const Op*>(b)->attributes();
  };
  info.copy = [](const void* op) -> std::shared_ptr<const void> {
    return std::make_shared<Op>(*static_cast<const Op*>(op));
  };
  info.samples = [] {
    std::vector<AnySample> all;
    for (auto& sample : Op::samples()) {
      all.push_back({sample.inputs, std::make_shared<Op>(sample.op)});
    }
    return all;
  };
  return info;
}

template <Operation Op>
const OpInfo& op_info() {
  static const OpInfo info = make_info<Op>();
  return info;
}

template <Operation Op>
size_t attribute_hash(const Op& op) {
  size_t seed = 0;
  std::apply([&](const auto&... a) { ((seed = mix(seed, hash_attribute(a))), ...); },
             op.attributes());
  return seed;
}

}  // namespace tessera::detail

/// Registers an operation. Use it once per operation, in a .cpp file.
#define TESSERA_REGISTER_OP(Op)                        \
  [[maybe_unused]] static const bool registered_##Op = \
      ::tessera::detail::register_op(::tessera::detail::op_info<Op>())
