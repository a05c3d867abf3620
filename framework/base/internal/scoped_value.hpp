#pragma once

#include <utility>

namespace tessera::detail {

/// Sets a variable for the duration of a scope and restores its previous value.
template <class T>
class ScopedValue {
 public:
  ScopedValue(T& variable, T value)
      : variable_(variable), previous_(std::exchange(variable, std::move(value))) {}
  ~ScopedValue() { variable_ = std::move(previous_); }
  ScopedValue(const ScopedValue&) = delete;
  ScopedValue& operator=(const ScopedValue&) = delete;

  /// The value to be restored.
  const T& previous() const { return previous_; }

 private:
  T& variable_;
  T previous_;
};

}  // namespace tessera::detail
