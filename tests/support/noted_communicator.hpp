#pragma once

#include <tessera/framework/comm/internal/communicator.hpp>

#include <memory>
#include <string>
#include <vector>

namespace tessera::test {

using namespace detail;

/// The calls of a communicator, in order.
struct CommNotes {
  /// Each announced call, as "all_reduce of hidden/kernel".
  std::vector<std::string> calls;
  /// The number of reductions and exchanges that were started.
  int64_t started = 0;
  /// The number of these that nobody has waited for.
  int64_t waiting = 0;
};

/// Wraps a communicator and records its calls.
std::shared_ptr<Communicator> noted_communicator(std::shared_ptr<Communicator> inner,
                                                 CommNotes& notes);

}  // namespace tessera::test
