#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/Version.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/helper_program.hpp>
#include <tessera/framework/base/internal/host_memory.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/base/version.hpp>
#include <tessera/framework/comm/nccl/gpu_report.hpp>
#include <tessera/framework/comm/nccl/torch_folder.hpp>

#include "apps/common/app_options.hpp"
#include "apps/common/run_app.hpp"
#include "apps/common/table.hpp"

namespace {

using namespace tessera;
using namespace tessera::detail;

using Report = std::vector<std::pair<std::string, std::string>>;

std::string gibibytes(uint64_t bytes) {
  return app::fixed(static_cast<double>(bytes) / double(uint64_t{1} << 30), 1) + " GiB";
}

/// Returns the name of the distribution, such as "Debian GNU/Linux 12 (bookworm)".
std::string distribution() {
  const std::string key = "PRETTY_NAME=\"";
  std::ifstream file("/etc/os-release");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return line.substr(key.size(), line.size() - key.size() - 1);
  }
  return "unknown";
}

std::string operating_system() {
  utsname kernel{};
  ::uname(&kernel);
  return str(distribution(), ", ", kernel.sysname, " ", kernel.release, ", ", kernel.machine,
             ", glibc ", gnu_get_libc_version());
}

std::string processors() {
  return str(std::thread::hardware_concurrency(), ", ", at::get_num_threads(), " threads, ",
             at::get_cpu_capability(), ", ", gibibytes(available_memory()), " of memory available");
}

/// Returns the names of the options that are on, or off.
std::string options_that_are(bool on) {
  std::string names;
  for (const auto& [name, value] : build_options()) {
    if (value == on) names += (names.empty() ? "" : " ") + name;
  }
  return names.empty() ? "none" : names;
}

std::string described(const GpuDescription& gpu) {
  return str(gpu.name, ", ", gibibytes(gpu.bytes), ", compute capability ", gpu.major, ".",
             gpu.minor);
}

Report report() {
  const std::string hdf5 = find_program("tessera-hdf5");
  // Without the "bin/.." of a search path.
  const std::string torch = std::filesystem::path(torch_folder()).lexically_normal().string();
  const GpuDriver driver = find_gpu_driver();
  Report report = {{"Tessera", version() + ", " + build_description()},
                   {"built with", options_that_are(true)},
                   {"built without", options_that_are(false)},
                   {"libtorch", str(TESSERA_TORCH_VERSION, ", ", torch)},
                   {"HDF5 files", hdf5.empty() ? "tessera-hdf5 is not installed" : hdf5},
                   {"system", operating_system()},
                   {"processors", processors()},
                   {"GPU driver", driver.version.empty() ? driver.problem : driver.version}};
  for (size_t i = 0; i < driver.gpus.size(); ++i) {
    report.emplace_back(str("GPU ", i), described(driver.gpus[i]));
  }
  if (driver.gpus.empty()) {
    const bool said = driver.problem.empty() || driver.version.empty();
    report.emplace_back("GPUs", "none" + (said ? "" : ": " + driver.problem));
  }
  report.emplace_back("NCCL", nccl_report());
  return report;
}

int run(int argc, char** argv) {
  bool json = false;
  app::AppOptions options = app::AppOptions::bare(
      "info", "Prints versions, devices and the options of the build, for reports of errors.");
  options.add({"json", "Output", "print a JSON object", app::toggle(json)});
  if (!options.parse(argc, argv)) return 0;
  if (json) {
    Json object = Json::object();
    for (const auto& [name, text] : report()) object[name] = text;
    std::cout << object.dump(2) << std::endl;
    return 0;
  }
  size_t width = 0;
  const Report lines = report();
  for (const auto& line : lines) width = std::max(width, line.first.size());
  for (const auto& [name, text] : lines) {
    std::cout << name << std::string(width + 2 - name.size(), ' ') << text << '\n';
  }
  std::cout << std::flush;
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, run); }
