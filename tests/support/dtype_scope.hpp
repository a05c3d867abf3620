#pragma once

#include <string>

#include <tessera/framework/nn/dtype_policy.hpp>

namespace tessera::test {

/// Layers made while it is alive have this dtype policy.
class DTypeScope {
 public:
  explicit DTypeScope(const std::string& name) : former_(default_dtype_policy()) {
    set_dtype_policy(dtype_policy(name));
  }
  ~DTypeScope() { set_dtype_policy(former_); }
  DTypeScope(const DTypeScope&) = delete;
  DTypeScope& operator=(const DTypeScope&) = delete;

 private:
  DTypePolicy former_;
};

}  // namespace tessera::test
