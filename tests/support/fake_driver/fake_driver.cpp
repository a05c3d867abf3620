// The functions of NVIDIA's driver that describe GPUs, for two imaginary ones; with
// FAKE_DRIVER_ERROR set, for none.
#include <cstddef>
#include <cstdlib>
#include <cstring>

// NOLINTBEGIN: the names of the driver.
extern "C" {

int cuInit(unsigned int) { return std::getenv("FAKE_DRIVER_ERROR") ? 100 : 0; }

int cuDriverGetVersion(int* version) {
  *version = 13020;
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = 2;
  return 0;
}

int cuDeviceGet(int* device, int index) {
  *device = 10 + index;
  return 0;
}

int cuDeviceGetName(char* name, int size, int device) {
  std::strncpy(name, device == 10 ? "Imaginary A" : "Imaginary B", static_cast<size_t>(size));
  return 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = static_cast<size_t>(device) << 30;
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 1 : -1;
  return 0;
}

int cuGetErrorString(int, const char** text) {
  *text = "no CUDA-capable device is detected";
  return 0;
}

}  // extern "C"
// NOLINTEND
