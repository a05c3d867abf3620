#pragma once

#include <ATen/core/TensorBody.h>

#include <tessera/framework/comm/internal/accelerator.hpp>

#include "tests/support/fake_gpu/fake_gpu.hpp"

namespace tessera::test {

using namespace detail;

/// Returns a fake GPU, which exists from the first call on.
inline c10::Device device(int index) { return gpu(index).device; }

/// Returns options of float32 tensors on the first fake GPU.
inline at::TensorOptions x_options() { return at::TensorOptions(device(0)).dtype(at::kFloat); }

/// Returns the counters of calling `body`.
template <class Body>
fake_gpu::Counters counted(const Body& body) {
  const fake_gpu::Counters before = fake_gpu::counters();
  body();
  return fake_gpu::counters() - before;
}

}  // namespace tessera::test
