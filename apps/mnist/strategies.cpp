#include "apps/mnist/strategies.hpp"

#include <dlfcn.h>

#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/strategy/central_storage.hpp>
#include <tessera/framework/strategy/mirrored_strategy.hpp>
#include <tessera/framework/strategy/multi_worker_mirrored_strategy.hpp>
#include <tessera/framework/strategy/one_device_strategy.hpp>

#include "apps/common/processes.hpp"

namespace tessera::mnist {

using namespace detail;

namespace {

[[noreturn]] void refuse(const std::string& why, const StrategyFlags& flags,
                         const std::string& option, const std::string& fix) {
  throw ConfigError("--strategy", why, flags.name + " with " + option, fix);
}

std::string device_name(const app::CommonOptions& common, int64_t number) {
  return str(app::runs_on_gpus(common) ? "cuda:" : "cpu:", number);
}

/// Returns the names of `--devices` devices; by default one CPU, or no names, which means all GPUs.
std::vector<std::string> device_names(const app::CommonOptions& common) {
  std::vector<std::string> names;
  const int64_t absent = app::runs_on_gpus(common) ? 0 : 1;
  for (int64_t i = 0; i < common.devices.value_or(absent); ++i) {
    names.push_back(device_name(common, i));
  }
  return names;
}

Distribution multi_worker(const app::CommonOptions& common) {
  using strategy::CommunicationImplementation;
  const bool gpus = app::runs_on_gpus(common);
  Distribution made;
  made.strategy =
      std::make_shared<strategy::MultiWorkerMirroredStrategy>(strategy::MultiWorkerMirroredOptions{
          .communication_options = {.implementation = gpus ? CommunicationImplementation::nccl
                                                           : CommunicationImplementation::ring},
          .devices_per_worker = common.devices.value_or(1),
          .distributed = app::distributed_options(common)});
  made.role = is_first_rank(made.strategy->mesh()) ? Role::leads : Role::trains;
  return made;
}

Distribution parameter_servers(const StrategyFlags& flags, const app::CommonOptions& common) {
  void* const library = dlopen("libmnist_parameter_servers.so", RTLD_NOW);
  void* const symbol = library ? dlsym(library, "mnist_parameter_servers") : nullptr;
  if (!symbol) {
    throw ConfigError("--strategy", "parameter servers need a library beside mnist", dlerror(),
                      "build it: ./run mnist --strategy parameter_server, or the target "
                      "mnist_parameter_servers; it needs libgrpc++-dev and protobuf-compiler-grpc");
  }
  Distribution made;
  reinterpret_cast<decltype(&mnist_parameter_servers)>(symbol)(flags, common, made);
  return made;
}

}  // namespace

void add_strategy_options(app::AppOptions& options, StrategyFlags& flags) {
  const std::string group = "Devices and layout";
  options.add({"strategy", group,
               "tf.distribute strategy, instead of --mesh and --layouts; --devices per process",
               app::choice(flags.name, {"one_device", "mirrored", "multi_worker_mirrored",
                                        "central_storage", "parameter_server"})});
  options.add({"max-part-bytes", group, "maximum bytes of a variable's part on a parameter server",
               app::integer(flags.max_part_bytes, 1)});
}

void check_strategy_options(const StrategyFlags& flags, const app::CommonOptions& common) {
  if (flags.max_part_bytes && flags.name != "parameter_server") {
    throw ConfigError("--max-part-bytes", "applies to variables on parameter servers only",
                      flags.name.empty() ? "no --strategy" : "--strategy " + flags.name,
                      "add --strategy parameter_server");
  }
  if (flags.name.empty()) return;
  const std::string own = "a strategy has its own mesh and layouts";
  if (!common.mesh.empty()) refuse(own, flags, "--mesh", "use --devices instead");
  if (!common.layouts.empty()) refuse(own, flags, "--layouts", "leave one of the two out");
  const bool processes = !common.coordinator.empty() || common.rank || common.processes;
  if (processes && flags.name != "multi_worker_mirrored") {
    refuse(flags.name == "parameter_server" ? "its tasks read the cluster from TF_CONFIG"
                                            : "it has one process",
           flags, "--coordinator, --rank or --processes", "leave them out");
  }
  if (flags.name == "one_device" && common.devices.value_or(1) != 1) {
    refuse("it has one device", flags, str("--devices ", *common.devices), "leave it out");
  }
  if (flags.name == "parameter_server" && common.device == "cuda") {
    refuse("workers compute on CPUs", flags, "--device " + common.device, "leave it out");
  }
}

Distribution distribute(const StrategyFlags& flags, const app::CommonOptions& common) {
  if (flags.name == "parameter_server") return parameter_servers(flags, common);
  if (flags.name == "multi_worker_mirrored") return multi_worker(common);
  if (flags.name == "one_device") {
    return {std::make_shared<strategy::OneDeviceStrategy>(device_name(common, 0))};
  }
  if (flags.name == "central_storage") {
    return {std::make_shared<strategy::CentralStorageStrategy>(
        strategy::CentralStorageOptions{.compute_devices = device_names(common)})};
  }
  return {std::make_shared<strategy::MirroredStrategy>(
      strategy::MirroredOptions{.devices = device_names(common)})};
}

}  // namespace tessera::mnist
