#pragma once

namespace tessera::detail {

/// Throws StateError for an empty handle of class `name`; `fix` says how to get one.
[[noreturn]] void throw_empty_handle(const char* name, const char* fix);

/// Dereferences a handle's pointer. Throws StateError if it is null.
template <class Pointer>
auto& handle_state(const Pointer& pointer, const char* name, const char* fix) {
  if (!pointer) [[unlikely]] {
    throw_empty_handle(name, fix);
  }
  return *pointer;
}

}  // namespace tessera::detail
