#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <tessera/framework/parameter_server/store/parameter_store.hpp>

namespace tessera::detail {

/// The parts of one group of variables on one server.
struct ParameterStore::Group {
  /// A part: its value, then what the optimizer keeps for it.
  struct Held {
    std::vector<Variable> tensors;
    bool trained = false;
  };
  std::vector<Held> parts;
  OptimizerHandle optimizer;
  /// A variable without elements: its gradient is there in every step, so that one whose other
  /// gradients all belong to other servers is made here, too.
  Variable step_taker;
  StoreState state{.version = 1};
  int64_t done_below = 0;
  std::set<std::pair<int64_t, int>> seen;  ///< closure and number of pushes

  /// Makes a part of a variable and what the optimizer keeps for it.
  void add(const Variable& whole, const Part& part);
  std::vector<Variable> train(const Variable& part, const Variable& whole) const;
  const Held& part(int number) const;
  /// Throws ConfigError if there is none; kind -1 is the value, too.
  const Variable& tensor(int number, int kind) const;
  /// Throws ConfigError or ShapeError for tensors that do not fit.
  void check(const std::vector<PartTensor>& tensors, int least_kind, int max_kind) const;
  void check_push(const PushId& id, bool step, const std::vector<PartTensor>& tensors) const;
  void check_rate(double rate) const;
  /// Notes a push; false if it was here before or its closure is done.
  bool is_new(const PushId& id);
  /// A step of the optimizer by the gradients among the tensors.
  void step(const std::vector<PartTensor>& tensors);
  StoreState now() const;
};

}  // namespace tessera::detail
