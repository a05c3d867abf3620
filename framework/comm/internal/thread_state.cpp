#include <tessera/framework/comm/internal/thread_state.hpp>

namespace tessera::detail {

ThreadState& thread_state() {
  thread_local ThreadState state;
  return state;
}

}  // namespace tessera::detail
