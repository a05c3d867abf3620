#pragma once

#include <memory>

#include <tessera/framework/comm/internal/engine.hpp>

namespace tessera::detail {

/// Returns an engine that sends CPU tensors through `host` and GPU tensors through `gpus`, each in
/// call order, so that host data such as a step's status does not wait for the GPU.
std::shared_ptr<Engine> split_engine(std::shared_ptr<Engine> host, std::shared_ptr<Engine> gpus);

}  // namespace tessera::detail
