#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/io/format/checkpoint_reader.hpp>
#include <tessera/framework/io/internal/checkpoint_parts.hpp>
#include <tessera/framework/training/history.hpp>

namespace tessera::detail {

/// An optimizer's part of a CheckpointState.
struct OptimizerState {
  std::string class_name;
  int64_t steps = 0;
  std::optional<double> learning_rate = std::nullopt;  ///< absent: a schedule, which follows steps
  Json own = nullptr;                                  ///< what Optimizer::state() gave
  std::vector<OptimizerState> inner = {};              ///< states of the optimizers inside
};

/// What a checkpoint holds beside tensors.
struct CheckpointState {
  int64_t seed = 0;
  FitPosition position = {};
  std::optional<History> history = std::nullopt;  ///< the course of the fit that runs
  Json metrics = nullptr;                         ///< what Model::metric_totals() gave; null: none
  std::vector<OptimizerState> optimizers = {};
  Json callbacks = Json::object();  ///< states by named_callbacks()
  Json extra = nullptr;
  /// A note of who keeps the checkpoint: null, or what CheckpointManager writes.
  Json about = nullptr;
};

/// The tensor that the losses of the history's steps are kept in, float64 [steps]: of a long run
/// they would make the JSON long.
inline constexpr const char* step_losses_name = "history.steps";
/// The losses of the steps that a checkpoint holds. Throws FileError.
std::vector<double> read_step_losses(const CheckpointReader& reader);

/// The present state. Collective.
CheckpointState present_state(const CheckpointParts& parts);

/// Gives an optimizer, and those inside, what was kept of them, which are of its class.
void restore_state(Optimizer& optimizer, const OptimizerState& state);

/// A state as JSON, in which numbers that are not finite are written as {"float": "nan"}.
Json to_json(const CheckpointState& state);
/// What to_json() gave. Throws FileError naming the folder.
CheckpointState state_from_json(const Json& json, const std::string& folder);

}  // namespace tessera::detail
