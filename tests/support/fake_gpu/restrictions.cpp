#include "tests/support/fake_gpu/restrictions.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <ATen/ATen.h>

#include "tests/support/fake_gpu/device.hpp"
#include "tests/support/fake_gpu/kernel.hpp"

namespace tessera::test::fake_gpu {

namespace {

using std::string_view;

/// Returns "add" for "aten::add_.Tensor".
string_view base_name(const c10::OperatorHandle& op) {
  string_view name = op.operator_name().name;
  if (name.starts_with("aten::")) name.remove_prefix(6);
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

template <size_t n>
bool is_one_of(const std::array<string_view, n>& names, string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether an operation accepts host tensors without axes as scalars.
bool takes_host_scalars(string_view name) {
  return is_one_of(std::to_array<string_view>({"add",
                                               "sub",
                                               "rsub",
                                               "mul",
                                               "div",
                                               "remainder",
                                               "fmod",
                                               "pow",
                                               "atan2",
                                               "hypot",
                                               "copysign",
                                               "maximum",
                                               "minimum",
                                               "fmax",
                                               "fmin",
                                               "eq",
                                               "ne",
                                               "lt",
                                               "le",
                                               "gt",
                                               "ge",
                                               "logical_and",
                                               "logical_or",
                                               "logical_xor",
                                               "bitwise_and",
                                               "bitwise_or",
                                               "bitwise_xor",
                                               "where",
                                               "lerp",
                                               "addcmul",
                                               "addcdiv",
                                               "clamp",
                                               "clamp_min",
                                               "clamp_max",
                                               "masked_fill",
                                               "fill",
                                               "index_put",
                                               "_index_put_impl",
                                               "index_fill",
                                               "floor_divide",
                                               "xlogy",
                                               "_fused_adam",
                                               "_fused_adamw",
                                               "_fused_sgd",
                                               "bitwise_left_shift",
                                               "bitwise_right_shift"}),
                   name);
}

bool takes_host_indices(string_view name) {
  return is_one_of(std::to_array<string_view>({"index", "index_put", "_index_put_impl"}), name);
}

bool is_product(string_view name) {
  return is_one_of(
      std::to_array<string_view>({"mm", "bmm", "addmm", "baddbmm", "addbmm", "addmv", "mv", "dot",
                                  "vdot", "_addmm_activation", "convolution_overrideable",
                                  "convolution_backward_overrideable"}),
      name);
}

bool is_fused(string_view name) { return name.starts_with("_fused_"); }

[[noreturn]] void throw_devices(c10::Device a, c10::Device b, string_view name) {
  TORCH_CHECK(false,
              "Expected all tensors to be on the same device, but found at least two "
              "devices, ",
              a, " and ", b, "! (when checking arguments of ", name, ")");
}

void check_integers(string_view name, const std::vector<c10::IValue>& inputs) {
  if (!is_product(name)) return;
  for_each_tensor(inputs.front(), [&](const at::Tensor& tensor) {
    TORCH_CHECK_NOT_IMPLEMENTED(!c10::isIntegralType(tensor.scalar_type(), true), '"', name,
                                "_cuda\" not implemented for '", tensor.scalar_type(), "'");
  });
}

/// All lists but the last one, of steps, must have one dtype.
void check_lists(string_view name, const c10::OperatorHandle& op,
                 const std::vector<c10::IValue>& inputs) {
  if (!is_fused(name)) return;
  std::optional<at::ScalarType> dtype;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (op.schema().arguments()[i].name() == "state_steps" || !inputs[i].isTensorList()) continue;
    for_each_tensor(inputs[i], [&](const at::Tensor& tensor) {
      if (!dtype) dtype = tensor.scalar_type();
      TORCH_CHECK(tensor.scalar_type() == *dtype,
                  "params, grads, exp_avgs, and exp_avg_sqs must "
                  "have same dtype, device, and layout");
    });
  }
}

void check_no_draws(string_view name, const c10::OperatorHandle& op) {
  for (const c10::Argument& argument : op.schema().arguments()) {
    const auto optional = argument.type()->cast<c10::OptionalType>();
    const bool draws =
        optional && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
    TORCH_CHECK_NOT_IMPLEMENTED(!draws, "the fake GPU has no random numbers: ", name);
  }
}

c10::Device device_of(string_view name, const std::vector<c10::IValue>& inputs) {
  std::optional<c10::Device> gpu;
  for (const c10::IValue& value : inputs) {
    for_each_tensor(value, [&](const at::Tensor& tensor) {
      if (!tensor.device().is_privateuseone()) return;
      if (!gpu) gpu = tensor.device();
      if (*gpu != tensor.device()) throw_devices(*gpu, tensor.device(), name);
    });
    if (!gpu && value.isDevice() && value.toDevice().is_privateuseone()) gpu = value.toDevice();
  }
  const c10::Device device = gpu.value_or(c10::Device(c10::kPrivateUse1, current_device()));
  return device.has_index() ? device : c10::Device(c10::kPrivateUse1, current_device());
}

void check_host_operands(string_view name, c10::Device gpu,
                         const std::vector<c10::IValue>& inputs) {
  for (const c10::IValue& value : inputs) {
    const bool indices = takes_host_indices(name) && !value.isTensor();
    for_each_tensor(value, [&](const at::Tensor& tensor) {
      const bool fits = tensor.dim() == 0 && takes_host_scalars(name);
      if (tensor.is_cpu() && !fits && !indices) throw_devices(gpu, tensor.device(), name);
    });
  }
}

}  // namespace

c10::Device check_operation(const c10::OperatorHandle& op, const std::vector<c10::IValue>& inputs) {
  const string_view name = base_name(op);
  check_no_draws(name, op);
  const c10::Device gpu = device_of(name, inputs);
  check_host_operands(name, gpu, inputs);
  check_integers(name, inputs);
  check_lists(name, op, inputs);
  return gpu;
}

bool waits_on_cuda(const c10::OperatorHandle& op) {
  return is_one_of(std::to_array<string_view>({"nonzero", "masked_select", "_unique", "_unique2",
                                               "unique_dim", "unique_consecutive", "equal",
                                               "repeat_interleave", "bincount", "histc"}),
                   base_name(op));
}

}  // namespace tessera::test::fake_gpu
