#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/strategy/strategy.hpp>

namespace tessera {

namespace detail {

/// "default", "one_device", "mirrored", "multi_worker_mirrored", "central_storage", "tpu".
const std::vector<std::string>& strategy_names();

}  // namespace detail

namespace strategy {

/// The strategy of a name, on `devices` virtual CPUs of this process; absent: on what it takes by
/// itself. Collective for "multi_worker_mirrored". Throws ConfigError for another name, a number of
/// devices below 1, more than one for a strategy that has one, and "tpu".
std::shared_ptr<const Strategy> make_strategy(const std::string& name,
                                              std::optional<int64_t> devices = std::nullopt);

}  // namespace strategy

}  // namespace tessera
