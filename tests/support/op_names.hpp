#pragma once

#include <set>
#include <string>

#include <tessera/framework/ops/engine/dispatch.hpp>

namespace tessera::test {

using namespace detail;

/// Records the operations that run in this thread during its lifetime.
class OpNames final : public OpListener {
 public:
  OpNames() { push_tape(this); }
  ~OpNames() override { remove_tape(this); }
  OpNames(const OpNames&) = delete;
  OpNames& operator=(const OpNames&) = delete;
  void ran(const OpInfo& info, const std::shared_ptr<const void>&, const std::shared_ptr<OpPlan>&,
           std::span<const DTensor>, std::span<const DTensor>) override {
    names_.insert(std::string(info.name));
  }
  bool has(const std::string& name) const { return names_.count(name) > 0; }

 private:
  std::set<std::string> names_;
};

}  // namespace tessera::test
