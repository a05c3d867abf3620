#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace tessera::test::fake_gpu {

/// Runs an operation's CPU kernel on the GPU's memory.
void run_on_cpu(const c10::OperatorHandle& op, c10::Stack* stack);

/// Registers kernels that ATen would otherwise compose from others.
void register_kernels();

}  // namespace tessera::test::fake_gpu
