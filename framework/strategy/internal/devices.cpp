#include <tessera/framework/strategy/internal/devices.hpp>

#include <algorithm>
#include <cctype>
#include <optional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>

namespace tessera::detail {

namespace {

/// Removes `prefix` from the front of a text; returns whether it was there.
bool drop(std::string& text, const std::string& prefix) {
  if (text.rfind(prefix, 0) != 0) return false;
  text.erase(0, prefix.size());
  return true;
}

/// Parses a device name in any of the formats, case-insensitively; nothing if it is invalid.
std::optional<Device> parsed(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (drop(text, "/job:localhost") && !(drop(text, "/replica:0") && drop(text, "/task:0"))) {
    return std::nullopt;
  }
  drop(text, "/");
  drop(text, "device:");
  if (drop(text, "gpu:")) text = "cuda:" + text;
  if (text.find(':') == std::string::npos) return std::nullopt;
  try {
    return device_from_string(text);
  } catch (const MeshError&) {
    return std::nullopt;
  }
}

}  // namespace

Device parse_device(const std::string& where, const std::string& name) {
  const std::optional<Device> device = parsed(name);
  if (!device) {
    throw MeshError(where, "a device of this process has a name such as \"cpu:0\" or \"/gpu:0\"",
                    in_quotes(name), "use such a name");
  }
  const int gpus = gpu_count();
  if (device->type == Device::Type::cuda && device->index >= gpus) {
    throw MeshError(where, str("this process has ", gpus, gpus == 1 ? " GPU" : " GPUs"),
                    in_quotes(name), "name one of them, or virtual CPUs such as \"cpu:0\"");
  }
  return *device;
}

std::vector<Device> parse_devices(const std::string& where, const std::vector<std::string>& names) {
  const int gpus = gpu_count();
  if (names.empty()) return gpus > 0 ? cuda_devices(gpus) : virtual_cpus(1);
  std::vector<Device> devices;
  for (const std::string& name : names) {
    const Device device = parse_device(where, name);
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) {
      throw MeshError(where, "each device is named once", in_quotes(name) + " again",
                      "leave it out the second time");
    }
    if (!devices.empty() && device.type != devices[0].type) {
      throw MeshError(where, "devices are all CPUs or all GPUs",
                      to_string(devices[0]) + " and " + to_string(device),
                      "name devices of one kind");
    }
    devices.push_back(device);
  }
  return devices;
}

}  // namespace tessera::detail
