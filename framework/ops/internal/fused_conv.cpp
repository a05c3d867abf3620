#include <tessera/framework/ops/internal/fused_conv.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/bfloat16.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/fused_conv_kernels.hpp>
#include <tessera/framework/tensor/internal/memory_planner.hpp>

namespace tessera::detail {

namespace {

std::atomic<int64_t> packed_count = 0;

/// Returns one of ATen's operations for oneDNN, which its headers do not declare; none if this
/// libtorch lacks it.
std::optional<c10::OperatorHandle> onednn_op(const char* name, const char* overload = "") {
  return c10::Dispatcher::singleton().findSchema({name, overload});
}

at::Tensor call(const c10::OperatorHandle& op, std::vector<c10::IValue> arguments) {
  op.callBoxed(arguments);
  return arguments[0].toTensor();
}

struct OneDnn {
  std::optional<c10::OperatorHandle> pack = onednn_op("mkldnn::_reorder_convolution_weight");
  std::optional<c10::OperatorHandle> conv = onednn_op("mkldnn::_convolution_pointwise");
  std::optional<c10::OperatorHandle> conv_add =
      onednn_op("mkldnn::_convolution_pointwise", "binary");
  bool complete() const {
    return pack && conv && conv_add && at::globalContext().userEnabledMkldnn();
  }
};

const OneDnn& onednn() {
  static const OneDnn ops;
  return ops;
}

/// oneDNN's names of activations, and their numbers.
const char* activation_name(FusedActivation activation) {
  switch (activation) {
    case FusedActivation::relu:
      return "relu";
    case FusedActivation::relu6:
      return "hardtanh";
    case FusedActivation::none:
      break;
  }
  return "none";
}

c10::List<std::optional<at::Scalar>> activation_numbers(FusedActivation activation) {
  c10::List<std::optional<at::Scalar>> numbers;
  if (activation == FusedActivation::relu6) {
    numbers.push_back(at::Scalar(0.0));
    numbers.push_back(at::Scalar(6.0));
  }
  return numbers;
}

void activate(const at::Tensor& y, FusedActivation activation) {
  if (activation == FusedActivation::relu) y.relu_();
  if (activation == FusedActivation::relu6) y.clamp_(0, 6);
}

}  // namespace

class PackedKernels {
 public:
  /// How a kernel is read: by a convolution of rows of this shape, or by a matrix product.
  struct Use {
    std::vector<int64_t> row = {};
    Convolution::Local local = {};
    int64_t groups = 0;
    bool operator==(const Use&) const = default;
  };

  /// Returns the copy for this bias and use, which `pack` makes if there is none yet. The entry
  /// keeps the bias' memory, so that no other one can take its place.
  template <class Pack>
  at::Tensor of(const at::Tensor& bias, const Use& use, const Pack& pack) {
    const std::lock_guard lock(mutex_);
    const auto same = [&](const Entry& entry) {
      return entry.bias.const_data_ptr() == bias.const_data_ptr() &&
             entry.bias.sizes() == bias.sizes() && entry.use == use;
    };
    const auto found = std::find_if(entries_.begin(), entries_.end(), same);
    if (found != entries_.end()) return found->packed;
    std::erase_if(entries_, [](const Entry& e) { return e.bias.storage().use_count() == 1; });
    const MemoryPlanner::Pause unplanned;
    // An alias, by which the storage is used once more than by others.
    entries_.push_back({bias.alias(), pack(), use});
    ++packed_count;
    return entries_.back().packed;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    entries_.clear();
  }

 private:
  struct Entry {
    at::Tensor bias, packed;
    Use use;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

std::shared_ptr<PackedKernels> make_packed_kernels() { return std::make_shared<PackedKernels>(); }

void clear(PackedKernels& kernels) { kernels.clear(); }

int64_t packed_kernels() { return packed_count; }

Specs FusedConvOp::infer(const Specs& in) const {
  Specs narrow = in;
  if (at::isReducedFloatingType(in[0].dtype)) {
    for (size_t i = 1; i < residual_at(); i += 2) {
      if (in[i].dtype == at::kFloat) narrow[i].dtype = in[0].dtype;
    }
  }
  check_same_dtype(name, narrow);
  Specs out = {{conv_shape(name, in), in[0].dtype}};
  const auto check = [&](const Spec& operand, const Shape& expected, const char* what) {
    if (operand.shape == expected) return;
    throw ShapeError(std::string(name), str(what, " has shape ", to_string(expected)),
                     to_string(operand.shape), "reshape it");
  };
  const Shape& y = out[0].shape;
  const Shape channels(y.end() - channel_axes(), y.end());
  check(in[2], channels, "the bias");
  if (scales) check(in[3], channels, "a factor");
  if (adds) check(in[residual_at()], y, "the residual");
  return out;
}

Rule FusedConvOp::rule(const Specs&) const {
  const std::string y = image_term("o"), channels = grouped ? " , g o" : " , o";
  return Rule::parse(image_term("!c") + " , " + kernel_term("!c") + channels +
                     (scales ? channels : "") + (adds ? " , " + y : "") + " -> " + y);
}

Interval FusedConvOp::window(size_t input, int64_t axis, Interval out, const Specs& in) const {
  if (input == residual_at()) return out;
  return windows.reads(axis - 1, out, in[0].shape[size_t(axis)]);
}

bool FusedConvOp::is_product(const LocalArgs& in) const {
  const at::Tensor& x = in[0];
  if (grouped || !x.is_cpu() || x.scalar_type() != at::kFloat) return false;
  for (int64_t i = 0; i < spatial(); ++i) {
    const WindowAxis& axis = windows[i];
    if (axis.size != 1 || axis.stride != 1 || axis.before != 0 || axis.after != 0) return false;
  }
  // Measured with 2 threads on the networks of `bench compare --work vision`: oneDNN's convolution
  // costs 20 us more to start, and adds a residual to a copy. With many pixels it is faster.
  constexpr int64_t few_pixels = 600, little_work = 12'000'000;
  const int64_t pixels = x.numel() / x.size(-1);
  return adds || pixels <= few_pixels || pixels * in[1].numel() <= little_work;
}

at::Tensor FusedConvOp::scaled_kernel(const LocalArgs& in) const {
  return scales ? in[1] * in[3] : in[1];
}

at::Tensor FusedConvOp::product(const LocalArgs& in) const {
  const int64_t channels = in[1].size(-1);
  const auto scaled = [&] { return scaled_kernel(in); };
  const at::Tensor kernel = packed && scales ? packed->of(in[2], {}, scaled) : scaled();
  const at::Tensor y = at::mm(in[0].reshape({-1, in[0].size(-1)}), kernel.reshape({-1, channels}));
  const at::Tensor residual = adds ? in[residual_at()].contiguous() : at::Tensor();
  finish_product(y, in[2].contiguous(), residual, activation);
  std::vector<int64_t> shape = in[0].sizes().vec();
  shape.back() = channels;
  return y.view(shape);
}

bool FusedConvOp::is_by_channel(const at::Tensor& x, const at::Tensor& kernel) const {
  const at::ScalarType dtype = x.scalar_type();
  if (!grouped || adds || !x.is_cpu() || spatial() != 2) return false;
  if (dtype != at::kFloat && dtype != at::kBFloat16) return false;
  if (kernel.size(2) != 1 || kernel.size(-1) != 1) return false;
  return can_convolve_channels(kernel.size(0) * kernel.size(1));
}

at::Tensor FusedConvOp::by_channel(const LocalArgs& in, const at::Tensor& x,
                                   const Local& local) const {
  const auto scaled = [&] {
    const at::Tensor kernel = scaled_kernel(in).to(at::kFloat);
    return kernel.reshape({kernel.size(0), kernel.size(1), -1}).contiguous();
  };
  const at::Tensor kernel = packed ? packed->of(in[2], {}, scaled) : scaled();
  return convolve_channels(x.contiguous(at::MemoryFormat::ChannelsLast), kernel,
                           in[2].flatten().to(at::kFloat).contiguous(), local, activation);
}

Tensors FusedConvOp::forward(const LocalArgs& in) const {
  if (is_product(in)) return {product(in)};
  load_gpus();
  const int64_t groups = Convolution::groups(in[0]);
  Local local = Convolution::local();
  std::vector<Interval> out;
  for (int64_t i = 0; i < spatial(); ++i) out.push_back(in.out_range(i + 1));
  const at::Tensor x = padded(in, out, local);
  if (is_by_channel(x, in[1])) return {image_of(by_channel(in, x, local), groups)};
  const at::Tensor bias = in[2].flatten().contiguous();
  const at::Tensor residual = adds ? channels_first(in[residual_at()], spatial()) : at::Tensor();
  const auto kernel = [&] { return filters(scaled_kernel(in).to(x.scalar_type())); };
  const bool fast =
      spatial() == 2 && x.is_cpu() && is_fast_in_onednn(x.scalar_type()) && onednn().complete();
  if (!fast) {
    at::Tensor y = at::convolution(x, kernel(), bias, local.stride, local.padding, local.dilation,
                                   false, local.output_padding, groups);
    if (adds) y = y + residual;
    activate(y, activation);
    return {image_of(y, groups)};
  }
  const auto packed_kernel = [&] {
    return call(*onednn().pack, {kernel().contiguous(), local.padding, local.stride, local.dilation,
                                 groups, x.sizes().vec()});
  };
  // One copy serves all numbers of rows.
  const at::Tensor weight =
      packed ? packed->of(in[2], {x.sizes().slice(1).vec(), local, groups}, packed_kernel)
             : kernel();
  const c10::IValue none;
  // oneDNN's functions add no residual of one channel or of one pixel.
  const bool adds_there = adds && bias.numel() > 1 && residual.size(2) * residual.size(3) > 1;
  if (!adds_there) {
    const FusedActivation there = adds ? FusedActivation::none : activation;
    at::Tensor y =
        call(*onednn().conv, {x, weight, bias, local.padding, local.stride, local.dilation, groups,
                              activation_name(there), activation_numbers(there), none});
    if (adds) activate(y.add_(residual), activation);
    return {image_of(y, groups)};
  }
  // After an addition, oneDNN's functions take no other activation than relu.
  const bool activates = activation == FusedActivation::relu;
  at::Tensor y =
      call(*onednn().conv_add,
           {x, residual, weight, bias, local.padding, local.stride, local.dilation, groups, "add",
            none, activates ? c10::IValue(activation_name(activation)) : none,
            c10::List<std::optional<at::Scalar>>(), none});
  if (!activates) activate(y, activation);
  return {image_of(y, groups)};
}

Samples<FusedConvOp> FusedConvOp::samples() {
  const auto of = [](const Shape& x, const Shape& kernel, const std::vector<WindowAxis>& axes,
                     FusedActivation activation, const Shape& residual = {}, bool grouped = false,
                     bool scales = false) {
    Sample<FusedConvOp> sample;
    const size_t r = axes.size();
    const Shape channels = {kernel.begin() + int64_t(r) + 1, kernel.end()};
    sample.inputs = {{x}, {kernel}, {channels}};
    if (scales) sample.inputs.push_back({channels});
    if (!residual.empty()) sample.inputs.push_back({residual});
    sample.op = {{Windows(axes), grouped}, activation, scales, !residual.empty()};
    return sample;
  };
  return {
      of({2, 5, 6, 2}, {3, 2, 2, 3}, {{3}, {2}}, FusedActivation::relu),
      of({2, 3, 4, 2}, {1, 1, 2, 3}, {{1}, {1}}, FusedActivation::relu6, {2, 3, 4, 3}, false, true),
      of({1, 8, 4, 1}, {3, 3, 1, 2}, {{3, 2, 1, 0, 1}, {3, 1, 1, 1, 1}}, FusedActivation::none),
      of({2, 5, 3}, {2, 3, 2}, {{2}}, FusedActivation::relu6, {2, 4, 2}),
      of({1, 4, 3, 3, 1}, {3, 2, 1, 3, 2}, {{3, 1, 1, 1, 1}, {2}}, FusedActivation::relu6, {}, true,
         true),
      of({2, 4, 5, 3, 1}, {3, 3, 1, 3, 1}, {{3, 1, 1, 1, 1}, {3, 2, 1, 0, 1}},
         FusedActivation::relu, {}, true, true)};
}

TESSERA_REGISTER_OP(FusedConvOp);

}  // namespace tessera::detail
