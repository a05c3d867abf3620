#pragma once

#include <utility>

namespace tessera::detail {

/// Sets a variable for the duration of a scope and restores its former value.
template <class T>
class ScopedValue {
 public:
  ScopedValue(T& variable, T value)
      : variable_(variable), former_(std::exchange(variable, std::move(value))) {}
  ~ScopedValue() { variable_ = std::move(former_); }
  ScopedValue(const ScopedValue&) = delete;
  ScopedValue& operator=(const ScopedValue&) = delete;

  /// The value to be restored.
  const T& former() const { return former_; }

 private:
  T& variable_;
  T former_;
};

}  // namespace tessera::detail
