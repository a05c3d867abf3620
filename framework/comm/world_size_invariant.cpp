#include <tessera/framework/comm/world_size_invariant.hpp>

#include <tessera/framework/comm/internal/thread_state.hpp>

namespace tessera {

bool detail::world_size_invariant() { return detail::thread_state().world_size_invariant; }

WorldSizeInvariantScope::WorldSizeInvariantScope(bool on)
    : invariant_(detail::thread_state().world_size_invariant,
                 on || detail::world_size_invariant()) {}

}  // namespace tessera
