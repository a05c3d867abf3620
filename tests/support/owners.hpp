#pragma once

#include <string>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/owner.hpp>

namespace tessera::test {

/// Returns an own_number() of a process of this machine that has ended: it had this one's id
/// before.
inline std::string ended_number(int count = 0) {
  const detail::Owner self = detail::this_process();
  return detail::str(self.machine, '-', self.pid, '-', self.start + 1, '-', count);
}

/// Returns an own_number() of a process of another machine.
inline std::string elsewhere_number(int count = 0) {
  return detail::str("0123456789abcdef-4711-17-", count);
}

}  // namespace tessera::test
