#pragma once

#include <utility>

namespace tessera::detail {

/// Gives a variable another value while alive, and then the former one again.
template <class T>
class ScopedValue {
 public:
  ScopedValue(T& variable, T value)
      : variable_(variable), former_(std::exchange(variable, std::move(value))) {}
  ~ScopedValue() { variable_ = std::move(former_); }
  ScopedValue(const ScopedValue&) = delete;
  ScopedValue& operator=(const ScopedValue&) = delete;

  /// The value that the variable had before.
  const T& former() const { return former_; }

 private:
  T& variable_;
  T former_;
};

}  // namespace tessera::detail
