#include <tessera/framework/mesh/device.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

namespace {

std::vector<Device> devices(Device::Type type, int64_t n) {
  if (n < 1 || n > 65536) {
    throw MeshError("devices", "a process holds 1 to 65536 devices", str(n, " devices"),
                    "ask for at least one device");
  }
  std::vector<Device> list;
  for (int i = 0; i < n; ++i) list.push_back({type, i});
  return list;
}

}  // namespace

std::vector<Device> virtual_cpus(int64_t n) { return devices(Device::Type::cpu, n); }

std::vector<Device> cuda_devices(int64_t n) { return devices(Device::Type::cuda, n); }

std::string to_string(Device device) {
  return (device.type == Device::Type::cpu ? "cpu:" : "cuda:") + std::to_string(device.index);
}

Device device_from_string(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string number = colon == std::string::npos ? "0" : text.substr(colon + 1);
  const bool digits = !number.empty() && number.size() < 6 &&
                      number.find_first_not_of("0123456789") == std::string::npos;
  if ((kind != "cpu" && kind != "cuda") || !digits) {
    throw MeshError("device", "a device is written cpu:N or cuda:N", in_quotes(text),
                    "write for example cpu:0");
  }
  return {kind == "cpu" ? Device::Type::cpu : Device::Type::cuda, std::stoi(number)};
}

}  // namespace tessera
