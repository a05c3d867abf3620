#pragma once

namespace tessera::detail {

/// Throws StateError: a handle of the class `name` is empty; `fix` says what it may come from.
[[noreturn]] void throw_empty_handle(const char* name, const char* fix);

/// What a handle points to. Throws StateError if it is empty.
template <class Pointer>
auto& handle_state(const Pointer& pointer, const char* name, const char* fix) {
  if (!pointer) [[unlikely]] {
    throw_empty_handle(name, fix);
  }
  return *pointer;
}

}  // namespace tessera::detail
