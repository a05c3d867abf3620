#pragma once

#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

namespace tessera::test::fake_gpu {

/// Returns the GPU that an operation runs on. Throws as ATen does for what only CUDA's kernels
/// refuse: operands on several devices, products of integers, lists of several dtypes in fused
/// optimizers; and for random numbers, which fake GPUs do not have.
c10::Device check_operation(const c10::OperatorHandle& op, const std::vector<c10::IValue>& inputs);

/// Whether CUDA's kernel of the operation waits for the GPU, because its results' sizes depend on
/// data or its results are on the host.
bool waits_on_cuda(const c10::OperatorHandle& op);

}  // namespace tessera::test::fake_gpu
