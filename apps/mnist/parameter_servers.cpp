#include <chrono>

#include <tessera/framework/parameter_server/parameter_server_strategy.hpp>

#include "apps/mnist/strategies.hpp"

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::mnist;

namespace {

Role role_of(TaskType type) {
  if (type == TaskType::chief) return Role::leads;
  return type == TaskType::evaluator ? Role::evaluates : Role::serves;
}

}  // namespace

extern "C" void mnist_parameter_servers(const StrategyFlags& flags,
                                        const app::CommonOptions& common,
                                        Distribution& distribution) {
  strategy::ParameterServerOptions options{
      .devices_per_worker = common.devices.value_or(1),
      .connect_timeout = std::chrono::seconds(common.connect_timeout),
      .timeout = std::chrono::seconds(common.timeout)};
  options.cluster.insecure = common.insecure;
  options.cluster.encrypt = common.encrypt;
  if (flags.max_part_bytes) {
    options.variable_partitioner = strategy::MaxSizePartitioner(*flags.max_part_bytes);
  }
  const auto made = std::make_shared<strategy::ParameterServerStrategy>(options);
  distribution = {.strategy = made,
                  .role = role_of(made->task_type()),
                  .is_over = [made] { return made->job_over(); },
                  .finish = [made] { return made->join(); }};
}
