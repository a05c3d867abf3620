#include <tessera/framework/comm/nccl/gpu_report.hpp>

#include <dlfcn.h>

#include <fstream>
#include <sstream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/loaded_library.hpp>
#include <tessera/framework/comm/nccl/torch_folder.hpp>

namespace tessera::detail {

namespace {

// Of the driver's interface, which is the same in all versions since CUDA 4.
constexpr int major_attribute = 75, minor_attribute = 76;

struct DriverFunctions {
  int (*init)(unsigned int flags);
  int (*version)(int* version);
  int (*count)(int* count);
  int (*device)(int* device, int index);
  int (*name)(char* name, int size, int device);
  int (*bytes)(size_t* bytes, int device);
  int (*attribute)(int* value, int attribute, int device);
  int (*error)(int code, const char** text);
};

DriverFunctions driver_functions(const LoadedLibrary& library) {
  DriverFunctions driver{};
  library.find("cuInit", driver.init);
  library.find("cuDriverGetVersion", driver.version);
  library.find("cuDeviceGetCount", driver.count);
  library.find("cuDeviceGet", driver.device);
  library.find("cuDeviceGetName", driver.name);
  library.find("cuDeviceTotalMem_v2", driver.bytes);
  library.find("cuDeviceGetAttribute", driver.attribute);
  library.find("cuGetErrorString", driver.error);
  return driver;
}

/// Returns the version in the file of the kernel's module: the first word of its first line that
/// begins with a digit.
std::string module_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (word.find('.') != word.npos && word[0] >= '0' && word[0] <= '9') return word;
  }
  return "unknown version";
}

GpuDescription describe_gpu(const DriverFunctions& driver, int index) {
  GpuDescription gpu;
  int device = 0;
  if (driver.device(&device, index) != 0) return gpu;
  char name[256] = "";
  size_t bytes = 0;
  if (driver.name(name, sizeof name, device) == 0) gpu.name = name;
  if (driver.bytes(&bytes, device) == 0) gpu.bytes = bytes;
  driver.attribute(&gpu.major, major_attribute, device);
  driver.attribute(&gpu.minor, minor_attribute, device);
  return gpu;
}

std::string error_text(const DriverFunctions& driver, int code) {
  const char* text = nullptr;
  driver.error(code, &text);
  return text ? text : str("error ", code);
}

}  // namespace

GpuDriver find_gpu_driver(const std::string& library) {
  GpuDriver found;
  try {
    const DriverFunctions driver = driver_functions(LoadedLibrary(
        {library},
        {.component = "driver", .rule = "GPUs need NVIDIA's driver", .fix = "install it"}));
    int cuda = 0, count = 0;
    driver.version(&cuda);
    found.version = str(module_version(), ", for CUDA ", cuda / 1000, ".", cuda % 1000 / 10);
    int code = driver.init(0);
    if (code == 0) code = driver.count(&count);
    if (code != 0) found.problem = error_text(driver, code);
    for (int i = 0; i < count; ++i) found.gpus.push_back(describe_gpu(driver, i));
  } catch (const ConfigError&) {
    found.problem = "there is no driver for GPUs: " + library + " cannot be loaded";
  }
  return found;
}

std::string nccl_report() {
  try {
    const std::string bundled = torch_folder() + "../../nvidia/nccl/lib/libnccl.so.2";
    const LoadedLibrary library({bundled, "libnccl.so.2"},
                                {.component = "nccl", .rule = "", .fix = ""});
    int (*get_version)(int* version) = nullptr;
    library.find("ncclGetVersion", get_version);
    int code = 0;
    if (get_version(&code) != 0) return "its version cannot be read";
    Dl_info info{};
    const bool known = dladdr(reinterpret_cast<const void*>(get_version), &info) != 0;
    return str(code / 10000, ".", code / 100 % 100, ".", code % 100, ", ",
               known ? info.dli_fname : library.name().c_str());
  } catch (const ConfigError&) {
    return "none: libnccl.so.2 cannot be loaded";
  }
}

}  // namespace tessera::detail
