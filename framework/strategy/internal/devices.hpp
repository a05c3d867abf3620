#pragma once

#include <string>
#include <vector>

#include <tessera/framework/mesh/device.hpp>

namespace tessera::detail {

/// The device that a strategy's option names, in TensorFlow's way or ours: "/gpu:0", "GPU:0",
/// "cuda:0", "cpu:1", "/job:localhost/replica:0/task:0/device:CPU:0". Throws MeshError naming
/// `where` for another text, a device of another task, or a GPU that this process lacks.
Device device_named(const std::string& where, const std::string& name);

/// Devices of one kind, each once; of no names all GPUs, or one CPU where there are none. Throws
/// MeshError naming `where`.
std::vector<Device> devices_named(const std::string& where, const std::vector<std::string>& names);

}  // namespace tessera::detail
