#pragma once

#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::test {

using namespace detail;

/// Returns a group all of whose members belong to this process.
inline Group local_group(int64_t members) {
  Group group;
  group.dims = {0};
  for (int64_t m = 0; m < members; ++m) {
    group.owner.push_back(0);
    group.local.push_back(m);
  }
  return group;
}

}  // namespace tessera::test
