#pragma once

#include <memory>

#include <ATen/ATen.h>

#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/comm/nccl/nccl_engine.hpp>

#include "tests/support/rendezvous.hpp"

namespace tessera::test {

using namespace detail;

/// One rank of a run whose ranks are threads, each with a GPU of its own.
class Rank {
 public:
  Rank(Rendezvous& hub, int number)
      : rank(number),
        size(hub.size()),
        device(gpu(number).device),
        engine(make_nccl_engine({.rank = number,
                                 .size = hub.size(),
                                 .device = number,
                                 .gather = [&hub, number](const auto& key, const auto& text) {
                                   return hub.gather(number, key, text);
                                 }})) {}

  /// Returns a group in which every rank holds `each` members, assigned round-robin.
  Group everyone(int each = 1) const {
    Group group;
    for (int m = 0; m < each * size; ++m) {
      group.owner.push_back(m % size);
      if (m % size == rank) group.local.push_back(m);
    }
    return group;
  }

  /// A barrier: returns when every rank has called it, by waiting for a collective on the CPU.
  void meet() const {
    at::Tensor out;
    engine->all_reduce(everyone(), Reduce::sum, {at::ones({}, at::kInt)}, out);
  }

  const int rank, size;
  const c10::Device device;
  const std::shared_ptr<Engine> engine;
};

}  // namespace tessera::test
