#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/parameter_server/store/part_plan.hpp>

namespace tessera::detail {

/// Identifies a push, so that duplicates are detected.
struct PushId {
  int64_t closure = 0;     ///< number of the closure, from 1
  int number = 0;          ///< number of the push in its closure, from 0
  int64_t done_below = 0;  ///< closures with lower numbers are done and push no more
};

/// State of a group.
struct StoreState {
  int64_t version = 0;  ///< version of the values, from 1; grows with every change
  int64_t steps = 0;    ///< number of optimizer steps
  int64_t updates = 0;  ///< number of pushes applied
};

/// A tensor of part number `part`. `kind` 0: the value or a gradient, -1: a difference to add to
/// the value, k: the k-th of Optimizer::variables_of(), from 1.
struct PartTensor {
  int part = 0;
  int kind = 0;
  at::Tensor tensor = {};
};

/// Runs work on some thread and returns when it is done.
using Executor = std::function<void(const std::function<void()>& work)>;

/// The parts of variables stored on one parameter server. Each is one host tensor, which the
/// program's optimizer updates like a variable on a single device. Independent of gRPC.
/// Thread-safe; changes are serialized.
class ParameterStore {
 public:
  /// Tensors are changed in `executor`; without one on the calling thread. A single thread avoids a
  /// team of OpenMP threads per caller.
  explicit ParameterStore(Executor executor = {});
  ~ParameterStore();

  /// Adds group number `group` with zero values. `parts`: this server's parts; `optimizer`: used by
  /// this store only (null: none). Throws StateError if the group exists.
  void add_group(int group, const std::vector<Variable>& variables, const std::vector<Part>& parts,
                 const OptimizerHandle& optimizer);
  bool has_group(int group) const;
  /// Waits until the group is added. Returns false after `patience`.
  bool wait_for_group(int group, std::chrono::milliseconds patience) const;

  /// Sets tensors of kind >= 0, the optimizer's steps unless -1, and its learning rate if given.
  /// Throws ConfigError or ShapeError naming the part, without changing anything, if one is
  /// invalid.
  StoreState assign(int group, const std::vector<PartTensor>& tensors, int64_t steps,
                    std::optional<double> learning_rate = std::nullopt);
  /// Returns a consistent snapshot of all values, with slot variables if `slots`; no tensors if
  /// `known_version` is the present version. Tensors may share the store's memory, which then
  /// copies before it changes them: release them soon.
  std::pair<StoreState, std::vector<PartTensor>> pull(int group, int64_t known_version,
                                                      bool slots) const;
  /// Applies an optimizer step with the gradients (kind 0) if `step`, and adds differences (kind
  /// -1). If the id is a duplicate or its closure is done, changes nothing and returns true as
  /// second. A step without gradients still counts: its gradients are all on other servers. Throws
  /// like assign().
  std::pair<StoreState, bool> push(int group, const PushId& id, bool step,
                                   const std::vector<PartTensor>& tensors);
  /// Returns shape and dtype of a part's tensor. Throws ConfigError for an unknown part or kind.
  std::pair<Shape, at::ScalarType> tensor_spec(int group, int part, int kind) const;
  StoreState state(int group) const;

 private:
  struct Group;
  Group& find(int group) const;
  void change(const std::function<void()>& work) const;

  Executor executor_;
  mutable std::mutex groups_mutex_;
  mutable std::condition_variable added_;
  std::map<int, std::unique_ptr<Group>> groups_;
  /// Guards the state of all groups, as they may share an optimizer.
  mutable std::mutex state_mutex_;
};

}  // namespace tessera::detail
