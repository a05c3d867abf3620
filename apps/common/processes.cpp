#include "apps/common/processes.hpp"

#include <tessera/framework/base/error.hpp>

namespace tessera::app {

using namespace detail;

namespace {

int64_t device_count(const MeshDims& mesh) {
  int64_t size = 1;
  for (const auto& dim : mesh) {
    if (dim.second > max_devices / size) {
      throw ConfigError("--mesh", str("must have at most ", max_devices, " devices"),
                        to_string(mesh), "write smaller sizes");
    }
    size *= dim.second;
  }
  return size;
}

MeshDims default_mesh(const CommonOptions& options, int64_t processes, const MeshDims& fallback) {
  if (options.devices) return {{"batch", processes * *options.devices}};
  if (runs_on_gpus(options)) {
    return {{"batch", processes * default_devices(distributed_options(options))}};
  }
  if (device_count(fallback) % processes == 0) return fallback;
  return {{"batch", processes}};
}

std::optional<Device::Type> device_type(const CommonOptions& options) {
  if (options.device == "auto") return std::nullopt;
  return options.device == "cuda" ? Device::Type::cuda : Device::Type::cpu;
}

}  // namespace

DistributedOptions distributed_options(const CommonOptions& options) {
  const auto number = [](const std::optional<int64_t>& value) {
    return static_cast<int>(value.value_or(-1));
  };
  return {.cluster = {options.coordinator, number(options.rank), number(options.processes),
                      options.insecure, options.encrypt},
          .devices = options.devices,
          .device_type = device_type(options),
          .virtual_devices = options.virtual_devices.value_or(1),
          .connect_timeout = std::chrono::seconds(options.connect_timeout),
          .timeout = std::chrono::seconds(options.timeout),
          .always_check = options.check_collectives,
          .shared_memory = options.shared_memory};
}

ElasticOptions elastic_options(const CommonOptions& options) {
  return {.snapshot_every = options.elastic_snapshot_every};
}

bool runs_on_gpus(const CommonOptions& options) {
  return device_type_of(distributed_options(options)) == Device::Type::cuda;
}

bool is_first_process(const CommonOptions& options) {
  return find_cluster(distributed_options(options).cluster).rank == 0;
}

int64_t verbosity(const CommonOptions& options) {
  return is_first_process(options) ? options.verbose : 0;
}

void check_device_count(const CommonOptions& options, const MeshDims& mesh) {
  const int64_t size = device_count(mesh);
  const int64_t processes = process_count(distributed_options(options));
  if (size < processes) {
    throw ConfigError("--mesh", str("must have a device for each of ", processes, " processes"),
                      to_string(mesh), "write larger sizes or start fewer processes");
  }
  if (!options.devices || *options.devices * processes == size) return;
  if (processes == 1) {
    throw ConfigError("--devices", str("must be the number of devices in the mesh, ", size),
                      str(*options.devices, " with mesh ", to_string(mesh)),
                      "leave --devices out or change the mesh");
  }
  throw ConfigError("--devices",
                    str("must be those of one process: ", processes, " processes share the ", size,
                        " devices of the mesh"),
                    str(*options.devices, " with mesh ", to_string(mesh)),
                    "leave --devices out or change the mesh");
}

MeshDims choose_mesh_dims(const CommonOptions& options, const MeshDims& from_layouts,
                          const MeshDims& fallback) {
  MeshDims dims = !options.mesh.empty() ? options.mesh : from_layouts;
  const int processes = process_count(distributed_options(options));
  if (dims.empty()) dims = default_mesh(options, processes, fallback);
  check_device_count(options, dims);
  return dims;
}

Mesh choose_mesh(const CommonOptions& options, const MeshDims& from_layouts,
                 const MeshDims& fallback) {
  const MeshDims dims = choose_mesh_dims(options, from_layouts, fallback);
  DistributedOptions distributed = distributed_options(options);
  const bool requested = !options.mesh.empty() || !options.layouts.empty() || options.devices;
  if (!requested && !options.virtual_devices && runs_on_gpus(options)) {
    // Fit the application's own mesh on the available GPUs.
    const int64_t gpus = process_count(distributed) * default_devices(distributed);
    distributed.virtual_devices = (device_count(dims) + gpus - 1) / gpus;
  }
  return create_distributed_mesh(dims, distributed);
}

}  // namespace tessera::app
