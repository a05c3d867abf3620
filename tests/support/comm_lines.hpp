#pragma once

#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>

namespace tessera::test {

using namespace detail;

/// Returns one line for each collective.
inline std::vector<std::string> comm_lines(const std::vector<CommEntry>& entries) {
  std::vector<std::string> list;
  for (const CommEntry& entry : entries) {
    list.push_back(str(entry.place, ": ", to_string(entry.op), " over ", entry.dims, ", ",
                       entry.members, " members, ", entry.bytes, " bytes, ", entry.received));
  }
  return list;
}

}  // namespace tessera::test
