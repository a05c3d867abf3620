#pragma once

#include <memory>
#include <utility>

#include <tessera/framework/base/internal/handle_state.hpp>

namespace tessera {

/// Base of the handles of losses, optimizers, …: a shared pointer to an object that users write as
/// a value, `Adam(1e-3)`. An empty handle converts to false.
template <class T>
class Handle {
 public:
  Handle() = default;
  Handle(std::shared_ptr<T> object) : object_(std::move(object)) {}  // NOLINT: reads as data
  /// Throws StateError for an empty handle.
  T& operator*() const {
    return detail::handle_state(object_, "handle", "give it an object, or the name of one");
  }
  T* operator->() const { return &**this; }
  explicit operator bool() const { return object_ != nullptr; }
  /// The shared pointer; null for an empty handle.
  const std::shared_ptr<T>& get() const { return object_; }

 private:
  std::shared_ptr<T> object_;
};

}  // namespace tessera
