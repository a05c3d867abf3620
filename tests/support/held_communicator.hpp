#pragma once

#include <tessera/framework/comm/internal/communicator.hpp>

#include <memory>

namespace tessera::test {

using namespace detail;

/// Wraps a communicator between processes: from the third step on, reductions end in the first
/// process only once it waits for them, since the others begin each of them then. Every process
/// wraps its own. The first must not wait for another collective in between.
std::shared_ptr<Communicator> held_communicator(std::shared_ptr<Communicator> inner);

}  // namespace tessera::test
