#pragma once

#include <memory>
#include <utility>

#include <tessera/framework/base/internal/handle_state.hpp>

namespace tessera {

namespace detail {

/// What the handles of losses, optimizers and their like are: a pointer that copies share, to an
/// object that a user writes as data, `Adam(1e-3)`. Without an object it is false.
template <class T>
class Handle {
 public:
  Handle() = default;
  Handle(std::shared_ptr<T> object) : object_(std::move(object)) {}  // NOLINT: reads as data
  /// Throws StateError for an empty handle.
  T& operator*() const {
    return handle_state(object_, "handle", "give it an object, or the name of one");
  }
  T* operator->() const { return &**this; }
  explicit operator bool() const { return object_ != nullptr; }
  /// Shares the object; null without one.
  const std::shared_ptr<T>& get() const { return object_; }

 private:
  std::shared_ptr<T> object_;
};

}  // namespace detail

}  // namespace tessera
