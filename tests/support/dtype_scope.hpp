#pragma once

#include <string>

#include <tessera/framework/nn/dtype_policy.hpp>

namespace tessera::test {

/// Sets the dtype policy of layers created during its lifetime.
class DTypeScope {
 public:
  explicit DTypeScope(const std::string& name) : previous_(default_dtype_policy()) {
    set_dtype_policy(dtype_policy(name));
  }
  ~DTypeScope() { set_dtype_policy(previous_); }
  DTypeScope(const DTypeScope&) = delete;
  DTypeScope& operator=(const DTypeScope&) = delete;

 private:
  DTypePolicy previous_;
};

}  // namespace tessera::test
