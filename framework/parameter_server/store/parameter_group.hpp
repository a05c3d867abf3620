#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <tessera/framework/parameter_server/store/parameter_store.hpp>

namespace tessera::detail {

/// The parts of one group of variables on one server.
struct ParameterStore::Group {
  /// A part: its value, then its slot variables.
  struct StoredPart {
    std::vector<Variable> tensors;
    bool trained = false;
  };
  std::vector<StoredPart> parts;
  OptimizerHandle optimizer;
  /// An empty variable with a gradient in every step, so that the optimizer also counts steps whose
  /// gradients are all on other servers.
  Variable step_counter;
  StoreState state{.version = 1};
  int64_t done_below = 0;
  std::set<std::pair<int64_t, int>> seen;  ///< closure and number of pushes

  /// Adds a part of a variable with its slot variables.
  void add(const Variable& variable, const Part& part);
  std::vector<Variable> build_slots(const Variable& part, const Variable& variable) const;
  const StoredPart& part(int number) const;
  /// Returns a tensor of a part; kinds 0 and -1 are the value. Throws ConfigError if there is none.
  const Variable& tensor(int number, int kind) const;
  /// Throws ConfigError or ShapeError for invalid tensors.
  void check(const std::vector<PartTensor>& tensors, int min_kind, int max_kind) const;
  void check_push(const PushId& id, bool step, const std::vector<PartTensor>& tensors) const;
  void check_rate(double rate) const;
  /// Records a push. Returns false if it is a duplicate or its closure is done.
  bool is_new(const PushId& id);
  /// Runs an optimizer step with the gradients among the tensors.
  void step(const std::vector<PartTensor>& tensors);
  StoreState current_state() const;
};

}  // namespace tessera::detail
