#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

/// A device that stores shards: a virtual CPU ("cpu:3") or a GPU ("cuda:0").
/// Virtual CPUs of one process share its memory and threads.
struct Device {
  enum class Type : uint8_t { cpu, cuda };
  Type type = Type::cpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};

/// Returns n virtual CPUs, "cpu:0" to "cpu:n-1". Throws MeshError for n < 1.
std::vector<Device> virtual_cpus(int64_t n);

/// Returns n GPUs, "cuda:0" to "cuda:n-1". Throws MeshError for n < 1.
std::vector<Device> cuda_devices(int64_t n);

/// "cpu:3", "cuda:0".
std::string to_string(Device device);

/// Parses the text of to_string(). Throws MeshError on any other text.
Device device_from_string(const std::string& text);

}  // namespace tessera
