#include <tessera/layers/recurrent/recurrent_handle.hpp>

#include <tessera/layers/internal/recurrent_layer.hpp>

namespace tessera {

using namespace detail;

void RecurrentHandle::reset_state() const { static_cast<RecurrentLayer&>(*layer()).reset_state(); }

}  // namespace tessera
