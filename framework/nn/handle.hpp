#pragma once

#include <memory>
#include <utility>

namespace tessera {

namespace detail {

/// What the handles of losses, optimizers and their like are: a pointer that copies share, to an
/// object that a user writes as data, `Adam(1e-3)`. Without an object it is false.
template <class T>
class Handle {
 public:
  Handle() = default;
  Handle(std::shared_ptr<T> object) : object_(std::move(object)) {}  // NOLINT: reads as data
  T& operator*() const { return *object_; }
  T* operator->() const { return object_.get(); }
  explicit operator bool() const { return object_ != nullptr; }
  /// Shares the object; null without one.
  const std::shared_ptr<T>& get() const { return object_; }

 private:
  std::shared_ptr<T> object_;
};

}  // namespace detail

}  // namespace tessera
