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

/// Which update a push is: told apart from its repetitions.
struct PushId {
  int64_t closure = 0;     ///< from 1
  int number = 0;          ///< number of the push in its closure, from 0
  int64_t done_below = 0;  ///< closures of lower numbers are done and push no more
};

/// How far a group of parts is.
struct StoreState {
  int64_t version = 0;  ///< version of the values, from 1; grows with every change
  int64_t steps = 0;    ///< steps that the optimizer has made
  int64_t updates = 0;  ///< pushes applied
};

/// Tensors of parts by number; `kind` 0: the value or a gradient, -1: what is added to the value,
/// k: the k-th of Optimizer::variables_of(), from 1.
struct PartTensor {
  int part = 0;
  int kind = 0;
  at::Tensor tensor = {};
};

/// Runs work, on whatever thread, and returns when it is done.
using Executor = std::function<void(const std::function<void()>& work)>;

/// The parts of variables that one parameter server holds: each is one host tensor, which the
/// optimizer of the program updates as the variable of a single device. Knows nothing of gRPC. Safe
/// to call from any thread; changes are made one at a time.
class ParameterStore {
 public:
  /// Changes of tensors are made by `executor`; without one by the calling thread. One thread for
  /// all saves each caller OpenMP threads of its own.
  explicit ParameterStore(Executor executor = {});
  ~ParameterStore();

  /// Adds group number `group`, with values of zero until assigned. `parts` are those of this
  /// server; `optimizer`, null for none, is used here alone. Throws StateError for a group that
  /// there is.
  void add_group(int group, const std::vector<Variable>& variables, const std::vector<Part>& parts,
                 const OptimizerHandle& optimizer);
  bool has_group(int group) const;
  /// Waits until the program has added it; false if that takes longer.
  bool wait_for_group(int group, std::chrono::milliseconds patience) const;

  /// Sets tensors of the kinds 0 and above, the optimizer's steps unless -1, and its learning rate
  /// if one is given. Nothing is changed if one does not fit: throws ConfigError, ShapeError naming
  /// the part.
  StoreState assign(int group, const std::vector<PartTensor>& tensors, int64_t steps,
                    std::optional<double> learning_rate = std::nullopt);
  /// Values of all parts at one moment, and what the optimizer keeps if `slots`; nothing where
  /// `known_version` is the present one. Tensors may share memory with the store, which never
  /// changes them then: let go of them soon.
  std::pair<StoreState, std::vector<PartTensor>> pull(int group, int64_t known_version,
                                                      bool slots) const;
  /// One update by gradients (kind 0), if `step`, and additions (kind -1), unless this id was here
  /// before or its closure is done; then second is true. A step without any gradient counts as one,
  /// too: the variables that have some rest elsewhere. Throws as assign().
  std::pair<StoreState, bool> push(int group, const PushId& id, bool step,
                                   const std::vector<PartTensor>& tensors);
  /// What a tensor of a part has to be. Throws ConfigError for a part or kind that there is not.
  std::pair<Shape, at::ScalarType> form(int group, int part, int kind) const;
  StoreState state(int group) const;

 private:
  struct Group;
  Group& find(int group) const;
  void change(const std::function<void()>& work) const;

  Executor executor_;
  mutable std::mutex groups_mutex_;
  mutable std::condition_variable added_;
  std::map<int, std::unique_ptr<Group>> groups_;
  /// Guards all that groups hold, as they may share an optimizer.
  mutable std::mutex state_mutex_;
};

}  // namespace tessera::detail
