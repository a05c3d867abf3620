#pragma once

#include <tessera/framework/comm/internal/communicator.hpp>

#include <memory>
#include <string>
#include <vector>

namespace tessera::test {

using namespace detail;

/// What a communicator was asked for, in order.
struct CommNotes {
  /// Of each announced call, "all_reduce of hidden/kernel".
  std::vector<std::string> calls;
  /// Of each reduction or exchange that was started.
  int64_t started = 0;
  /// Of these, how many nobody has waited for.
  int64_t waiting = 0;
};

/// Passes everything on to another communicator and keeps notes.
std::shared_ptr<Communicator> noted_communicator(std::shared_ptr<Communicator> inner,
                                                 CommNotes& notes);

}  // namespace tessera::test
