#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <tessera/framework/strategy/strategy.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::mnist {

/// The tf.distribute strategy of a run.
struct StrategyFlags {
  std::string name;  ///< empty: no strategy; mesh and layouts distribute the run
  /// Maximum size of a variable's part on a parameter server (default: variables are not split).
  std::optional<int64_t> max_part_bytes = std::nullopt;
};

/// Adds --strategy and --max-part-bytes.
void add_strategy_options(app::AppOptions& options, StrategyFlags& flags);

/// Checks the options after parse(). Throws ConfigError for options that exclude each other.
void check_strategy_options(const StrategyFlags& flags, const app::CommonOptions& common);

/// The role of a process in a run.
enum class Role : uint8_t {
  leads,      ///< trains, prints and writes files
  trains,     ///< trains together with the leader
  serves,     ///< serves the leader's fit, as worker or parameter server
  evaluates,  ///< evaluates the leader's checkpoints
};

/// A strategy, and the role of this process.
struct Distribution {
  std::shared_ptr<const strategy::Strategy> strategy = nullptr;  ///< null: no strategy
  Role role = Role::leads;
  /// Returns whether the run is over. Evaluator only.
  std::function<bool()> is_over = {};
  /// Returns the exit code after the run. Throws CommError if the run failed. Evaluator only.
  std::function<int()> finish = {};
};

/// Makes the strategy. Collective for "multi_worker_mirrored". Throws what the strategies'
/// constructors throw.
Distribution distribute(const StrategyFlags& flags, const app::CommonOptions& common);

}  // namespace tessera::mnist

/// Implements distribute() for "parameter_server", in a separate library that is loaded on demand,
/// so that mnist itself neither builds nor loads gRPC.
extern "C" void mnist_parameter_servers(const tessera::mnist::StrategyFlags& flags,
                                        const tessera::app::CommonOptions& common,
                                        tessera::mnist::Distribution& distribution);
