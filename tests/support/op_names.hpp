#pragma once

#include <algorithm>
#include <string>
#include <vector>

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
    names_.emplace_back(info.name);
  }
  bool has(const std::string& name) const {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  }
  /// Returns the names in the order in which the operations ran.
  const std::vector<std::string>& all() const { return names_; }

 private:
  std::vector<std::string> names_;
};

}  // namespace tessera::test
