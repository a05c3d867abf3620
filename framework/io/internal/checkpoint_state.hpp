#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/io/format/checkpoint_reader.hpp>
#include <tessera/framework/io/internal/checkpoint_parts.hpp>
#include <tessera/framework/training/history.hpp>

namespace tessera::detail {

/// The state of one optimizer in a CheckpointState.
struct OptimizerState {
  std::string class_name;
  int64_t steps = 0;
  std::optional<double> learning_rate = std::nullopt;  ///< absent: a schedule, which follows steps
  Json own = nullptr;                                  ///< result of Optimizer::state()
  std::vector<OptimizerState> inner = {};              ///< states of inner optimizers
};

/// Everything that a checkpoint holds besides tensors.
struct CheckpointState {
  int64_t seed = 0;
  FitPosition position = {};
  std::optional<History> history = std::nullopt;  ///< history of the current fit()
  Json metrics = nullptr;                         ///< result of Model::metric_totals(); null: none
  std::vector<OptimizerState> optimizers = {};
  Json callbacks = Json::object();  ///< states by named_callbacks()
  /// Layouts of the tensors with partial_sums_name(): mesh dimensions of each axis.
  std::map<std::string, std::vector<std::vector<std::string>>> partial_sums = {};
  Json extra = nullptr;
  /// Note by the owner of the checkpoint: null, or what CheckpointManager writes.
  Json about = nullptr;
};

/// Name of the float64 [steps] tensor that holds the history's step losses, which would make the
/// JSON too long.
inline constexpr const char* step_losses_name = "history.steps";
/// Calls `visit` for the tensors of a checkpoint: weights, slots, partial sums of gradients and
/// metrics that are not reduced yet, whose layouts are added to `state`, states of layers, and
/// tensors of callbacks. Collective: gradients that accumulate are reduced.
void for_each_tensor(
    const CheckpointParts& parts, CheckpointState& state,
    const std::function<void(const std::string& name, const DTensor& value)>& visit);

/// Reads the step losses of a checkpoint. Throws FileError.
std::vector<double> read_step_losses(const CheckpointReader& reader);

/// Collects the current state. Collective.
CheckpointState current_state(const CheckpointParts& parts);

/// Restores an optimizer and its inner optimizers, which must be of the classes in `state`.
void restore_state(Optimizer& optimizer, const OptimizerState& state);

/// Converts a state to JSON, with non-finite numbers as {"float": "nan"}.
Json to_json(const CheckpointState& state);
/// Parses the result of to_json(). Throws FileError naming the folder.
CheckpointState state_from_json(const Json& json, const std::string& folder);

}  // namespace tessera::detail
