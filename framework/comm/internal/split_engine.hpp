#pragma once

#include <memory>

#include <tessera/framework/comm/internal/engine.hpp>

namespace tessera::detail {

/// Tensors of CPUs by `host`, those of GPUs by `gpus`, each in the order of its calls: what a step
/// says on the host, as its status word, does not wait for what the GPU still computes.
std::shared_ptr<Engine> split_engine(std::shared_ptr<Engine> host, std::shared_ptr<Engine> gpus);

}  // namespace tessera::detail
