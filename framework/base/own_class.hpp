#pragma once

#include <type_traits>
#include <typeinfo>

namespace tessera {

namespace detail {
/// Whether a type is of namespace tessera itself, by the name that std::type_info::name() gives.
bool in_own_namespace(const char* type);
}

/// Whether the class of an object is Tessera's own and not one that the program derived: whether it
/// is a class of namespace tessera itself, or of an unnamed one in it. A program's own classes live
/// in namespaces of its own.
template <class T>
bool is_own_class(const T& object) {
  static_assert(std::is_polymorphic_v<T>);
  return detail::in_own_namespace(typeid(object).name());
}

}  // namespace tessera
