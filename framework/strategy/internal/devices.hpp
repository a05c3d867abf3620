#pragma once

#include <string>
#include <vector>

#include <tessera/framework/mesh/device.hpp>

namespace tessera::detail {

/// Parses a device name in TensorFlow's or Tessera's format: "/gpu:0", "GPU:0", "cuda:0", "cpu:1",
/// "/job:localhost/replica:0/task:0/device:CPU:0". Throws MeshError naming `where` for any other
/// text, a device of another task, or a GPU that this process does not have.
Device parse_device(const std::string& where, const std::string& name);

/// Parses names of distinct devices, all CPUs or all GPUs. Without names returns all GPUs, or one
/// CPU if there are none. Throws MeshError naming `where`.
std::vector<Device> parse_devices(const std::string& where, const std::vector<std::string>& names);

}  // namespace tessera::detail
