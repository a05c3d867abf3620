#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace tessera::test::fake_gpu {

/// Runs an operation by its kernel for the CPU, on the GPU's memory.
void run_on_cpu(const c10::OperatorHandle& op, c10::Stack* stack);

/// Makes kernels known that ATen would otherwise put together from others.
void register_kernels();

}  // namespace tessera::test::fake_gpu
