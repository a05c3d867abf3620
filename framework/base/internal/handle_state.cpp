#include <tessera/framework/base/internal/handle_state.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

void throw_empty_handle(const char* name, const char* fix) {
  throw StateError(name, "a handle that holds something", str("an empty ", name), fix);
}

}  // namespace tessera::detail
