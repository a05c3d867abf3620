#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/library.h>

#include "tests/support/fake_gpu/counters.hpp"
#include "tests/support/fake_gpu/fallback.hpp"
#include "tests/support/fake_gpu/kernel.hpp"
#include "tests/support/fake_gpu/restrictions.hpp"

namespace tessera::test::fake_gpu {

namespace {

/// Returns the argument that a result aliases by the schema; -1 for a new tensor.
int64_t argument_of(const c10::FunctionSchema& schema, size_t result) {
  const c10::AliasInfo* const alias = schema.returns()[result].alias_info();
  if (!alias) return -1;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* const other = schema.arguments()[i].alias_info();
    if (other && other->beforeSets() == alias->beforeSets()) return static_cast<int64_t>(i);
  }
  TORCH_CHECK(false, "the fake GPU has no ", schema.name(), ", which makes a view");
}

/// Whether a value is an empty tensor that a kernel may resize: the CPU's own.
bool may_grow(const c10::Argument& argument, const c10::IValue& value) {
  return argument.alias_info() && argument.alias_info()->isWrite() && value.isTensor() &&
         is_on_gpu(value.toTensor()) && value.toTensor().numel() == 0;
}

}  // namespace

void run_on_cpu(const c10::OperatorHandle& op, c10::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const size_t first = stack->size() - schema.arguments().size();
  const Values inputs(stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end());
  const c10::Device gpu = check_operation(op, inputs);
  if (waits_on_cuda(op)) count_wait(schema.name());
  std::vector<size_t> growing;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (may_grow(schema.arguments()[i], inputs[i])) growing.push_back(i);
  }
  std::vector<int64_t> aliases;
  for (size_t r = 0; r < schema.returns().size(); ++r) aliases.push_back(argument_of(schema, r));

  // The tensors that may have been resized follow the results.
  const Values results = run_kernel(gpu, schema.name().c_str(), inputs, [=](Values& values) {
    Values grown;
    for (size_t i : growing) {
      const at::Tensor& mine = values[i].toTensor();
      grown.push_back(values[i] = at::empty(mine.sizes(), mine.options()));
    }
    op.callBoxed(&values);
    for (size_t r = 0; r < aliases.size(); ++r) {
      if (aliases[r] >= 0) values[r] = c10::IValue();
    }
    values.insert(values.end(), grown.begin(), grown.end());
  });
  for (size_t g = 0; g < growing.size(); ++g) {
    const at::Tensor mine = inputs[growing[g]].toTensor();
    const at::Tensor made = results[aliases.size() + g].toTensor();
    if (made.sizes() == mine.sizes()) continue;
    mine.unsafeGetTensorImpl()->set_storage_keep_dtype(made.storage());
    mine.unsafeGetTensorImpl()->set_sizes_and_strides(made.sizes(), made.strides(), 0);
  }
  stack->resize(first);
  for (size_t r = 0; r < aliases.size(); ++r) {
    stack->push_back(aliases[r] < 0 ? results[r] : inputs[static_cast<size_t>(aliases[r])]);
  }
}

namespace {

/// List operations are one kernel here, as on CUDA, rather than one for each tensor.
void register_list_operations() {
  static auto* const library = new torch::Library(
      torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::_foreach_")) continue;
    const std::string full =
        name.name.substr(6) + (name.overload_name.empty() ? "" : ".") + name.overload_name;
    library->impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
  }
}

}  // namespace

void register_kernels() { register_list_operations(); }

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

}  // namespace tessera::test::fake_gpu
