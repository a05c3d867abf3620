#include <tessera/layers/recurrent/recurrent_handle.hpp>

#include <tessera/layers/internal/sequence_layer.hpp>

namespace tessera {

using namespace detail;

void RecurrentHandle::reset_state() const { static_cast<SequenceLayer&>(*layer()).reset_state(); }

}  // namespace tessera
