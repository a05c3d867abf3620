#pragma once

#include <ATen/core/TensorBody.h>

#include <tessera/framework/comm/internal/accelerator.hpp>

#include "tests/support/fake_gpu/fake_gpu.hpp"

namespace tessera::test {

using namespace detail;

/// A fake GPU, which is there once this was called.
inline c10::Device device(int index) { return gpu(index).device; }

/// Numbers on the first of them.
inline at::TensorOptions x_options() { return at::TensorOptions(device(0)).dtype(at::kFloat); }

/// What came of calling body.
template <class Body>
fake_gpu::Counters counted(const Body& body) {
  const fake_gpu::Counters before = fake_gpu::counters();
  body();
  return fake_gpu::counters() - before;
}

}  // namespace tessera::test
