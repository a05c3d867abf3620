#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/strategy/strategy.hpp>

namespace tessera {

/// Returns "default", "one_device", "mirrored", "multi_worker_mirrored", "central_storage", "tpu".
const std::vector<std::string>& strategy_names();

namespace strategy {

/// Makes a strategy by name, on `devices` virtual CPUs of this process (default: the strategy's own
/// default devices). Collective for "multi_worker_mirrored". Throws ConfigError for an unknown
/// name, `devices` below 1, more than one device for a single-device strategy, and "tpu".
std::shared_ptr<const Strategy> make_strategy(const std::string& name,
                                              std::optional<int64_t> devices = std::nullopt);

}  // namespace strategy

}  // namespace tessera
