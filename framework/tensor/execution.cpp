#include <tessera/framework/tensor/execution.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera {

const ExecutionContext& ExecutionContext::of(Device device) {
  if (device.type == Device::Type::cuda) {
    throw ConfigError("device " + to_string(device), "this build of Tessera has no CUDA", "",
                      "use virtual CPUs");
  }
  static const ExecutionContext cpu{c10::Device(c10::kCPU)};
  return cpu;
}

int64_t worker_count() { return at::get_num_threads(); }

}  // namespace tessera
