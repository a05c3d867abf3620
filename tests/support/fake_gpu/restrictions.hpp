#pragma once

#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

namespace tessera::test::fake_gpu {

/// The GPU that an operation runs on. Throws as ATen does for what CUDA's kernels refuse and the
/// CPU's do not: operands on several devices, products of integers, lists of several dtypes in
/// fused optimizers; and for random numbers, of which a fake GPU has none.
c10::Device check_operation(const c10::OperatorHandle& op, const std::vector<c10::IValue>& given);

/// Whether CUDA's kernel of the operation waits for the GPU, to know how large its results are or
/// since they lie on the host.
bool waits_on_cuda(const c10::OperatorHandle& op);

}  // namespace tessera::test::fake_gpu
