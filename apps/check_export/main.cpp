#include <sys/prctl.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>
#include <string>

#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/io/export.hpp>
#include <tessera/framework/io/format/versioned_directory.hpp>
#include <tessera/framework/io/internal/export_files.hpp>
#include <tessera/framework/model/config.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/run_app.hpp"

namespace {

using namespace tessera;
using namespace tessera::detail;

namespace fs = std::filesystem;

constexpr const char* help =
    "Loads a version of an export and computes its sample, as a server does before it switches to\n"
    "the version, in a process that may fail instead of the server.\n"
    "Usage: tessera-check-export FOLDER VERSION BYTES\n"
    "\n"
    "BYTES is the maximum activation memory of a call, 0 for no limit. Exit code 0: the version "
    "is\n"
    "good. 1: it is not, for the reason on standard output. 4: it has layers or text functions\n"
    "that only the server's program registers.\n";
constexpr int is_bad = 1;
constexpr int is_unknown = 4;

/// Memory for loading beyond weights and activations: code, vocabularies, threads.
constexpr rlim_t overhead_bytes = rlim_t{512} << 20;

/// Makes this process the first to be killed when memory runs out, and ends it with its server.
void prefer_oom_kill() {
  std::ofstream("/proc/self/oom_score_adj") << 1000;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  at::set_num_threads(1);
}

/// Returns the bytes of private data memory of this process.
rlim_t private_data_bytes() {
  std::ifstream file("/proc/self/status");
  rlim_t kilobytes = 0;
  for (std::string word; file >> word;) {
    if (word == "VmData:" && file >> kilobytes) break;
  }
  return kilobytes * 1024;
}

/// Returns the total bytes of a version's files, an upper bound for the weights, which are in
/// memory twice: as read and in the model.
rlim_t bytes_in(const std::string& folder) {
  rlim_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

void limit_memory(const std::string& folder, rlim_t activation_bytes) {
  const rlim_t max_bytes =
      private_data_bytes() + 2 * bytes_in(folder) + activation_bytes + overhead_bytes;
  const rlimit limit{max_bytes, max_bytes};
  ::setrlimit(RLIMIT_DATA, &limit);
}

/// Returns whether all classes of the version's layers are registered here.
bool knows_layers(const std::string& folder) {
  try {
    const std::string config = folder + "/" + export_file::config;
    model_from_config(read_json_file(config), config);
    const std::string text = folder + "/" + export_file::text;
    if (fs::exists(text)) layer_from_config(read_json_file(text), JsonPath(text));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

int check(const std::string& folder, int64_t version, int64_t activation_bytes) {
  const std::string path = version_path(folder, version);
  try {
    if (activation_bytes > 0) limit_memory(path, static_cast<rlim_t>(activation_bytes));
    if (!knows_layers(path)) return is_unknown;
    LoadExportOptions options{.version = version};
    if (activation_bytes > 0) options.max_activation_bytes = activation_bytes;
    load_export(folder, options);
    return 0;
  } catch (const std::bad_alloc&) {
    std::cout << "[" << path << "] there must be enough memory for the version";
  } catch (const std::exception& error) {
    std::cout << one_line(error.what(), 1000);
  }
  return is_bad;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string word = argc == 2 ? argv[1] : "";
  if (word == "--version") {
    std::cout << app::version_line("tessera-check-export") << std::endl;
    return 0;
  }
  if (argc != 4) {
    std::cout << help;
    return word == "--help" ? 0 : 2;
  }
  prefer_oom_kill();
  return check(argv[1], std::atoll(argv[2]), std::atoll(argv[3]));
}
