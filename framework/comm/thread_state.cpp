#include <tessera/framework/comm/thread_state.hpp>

namespace tessera {

ThreadState& thread_state() {
  thread_local ThreadState state;
  return state;
}

}  // namespace tessera
