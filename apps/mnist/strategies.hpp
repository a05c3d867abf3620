#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <tessera/framework/strategy/strategy.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::mnist {

/// Which of tf.distribute's strategies distributes a run.
struct StrategyFlags {
  std::string name;  ///< empty: none, mesh and layouts do
  /// Of variables on parameter servers; absent: they stay whole.
  std::optional<int64_t> max_part_bytes = std::nullopt;
};

/// Adds --strategy and --max-part-bytes.
void add_strategy_options(app::AppOptions& options, StrategyFlags& flags);

/// For after parse(). Throws ConfigError for options that exclude each other.
void check_strategy_options(const StrategyFlags& flags, const app::CommonOptions& common);

/// What a process does in a run.
enum class Role : uint8_t {
  leads,      ///< trains, prints and writes files
  trains,     ///< trains with that one
  serves,     ///< works for the fit of that one
  evaluates,  ///< evaluates the checkpoints of that one
};

/// A strategy, and what this process does under it.
struct Distribution {
  std::shared_ptr<const strategy::Strategy> strategy = nullptr;  ///< null: none
  Role role = Role::leads;
  /// For who evaluates: whether the run is over.
  std::function<bool()> is_over = {};
  /// For who evaluates: the exit code once it is. Throws CommError if it has failed.
  std::function<int()> finish = {};
};

/// Collective for "multi_worker_mirrored". Throws as the strategies' constructors.
Distribution distribute(const StrategyFlags& flags, const app::CommonOptions& common);

}  // namespace tessera::mnist

/// distribute() for "parameter_server", in a library of its own, which is loaded when it is asked
/// for: a program that does without it neither builds nor loads gRPC.
extern "C" void mnist_parameter_servers(const tessera::mnist::StrategyFlags& flags,
                                        const tessera::app::CommonOptions& common,
                                        tessera::mnist::Distribution& distribution);
