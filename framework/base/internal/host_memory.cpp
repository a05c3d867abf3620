#include <tessera/framework/base/internal/host_memory.hpp>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

namespace tessera::detail {
namespace {

constexpr uint64_t unlimited = std::numeric_limits<uint64_t>::max();

/// Reads the number in a file; nullopt for "max" or a missing file.
std::optional<uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

/// Reads the number on the line that begins with `word`.
std::optional<uint64_t> number_after(const std::string& path, const std::string& word) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    uint64_t number = 0;
    if (words >> first >> number && first == word) return number;
  }
  return std::nullopt;
}

/// Returns how many bytes a control group leaves; `first_version` selects the file names of cgroup
/// v1.
uint64_t bytes_left_in(const std::string& folder, bool first_version) {
  const auto limit = number_in(folder + (first_version ? "/memory.limit_in_bytes" : "/memory.max"));
  const auto used =
      number_in(folder + (first_version ? "/memory.usage_in_bytes" : "/memory.current"));
  if (!limit || !used) return unlimited;
  const char* const pages = first_version ? "total_inactive_file" : "inactive_file";
  const uint64_t reclaimable = number_after(folder + "/memory.stat", pages).value_or(0);
  const uint64_t unreclaimable = *used - std::min(*used, reclaimable);
  return *limit - std::min(*limit, unreclaimable);
}

/// Returns the minimum of bytes_left_in() over the group at `path` below `folder` and its
/// ancestors. In a container `path` may be the host's, of which only the root folder is visible.
uint64_t min_bytes_left(const std::string& folder, std::string path, bool first_version) {
  uint64_t least = bytes_left_in(folder, first_version);
  for (; path.size() > 1; path.erase(path.rfind('/'))) {
    least = std::min(least, bytes_left_in(folder + path, first_version));
  }
  return least;
}

}  // namespace

uint64_t available_memory(const std::string& root) {
  const auto free = number_after(root + "/proc/meminfo", "MemAvailable:");
  uint64_t least = free ? *free * 1024 : unlimited;
  // Lines are "0::/path", or "4:memory:/path" in cgroup v1.
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string kinds = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool memory = kinds.find(",memory,") != std::string::npos;
    if (!memory && kinds != ",,") continue;
    const std::string path = line.substr(second + 1);
    if (path.empty() || path[0] != '/') continue;
    least = std::min(
        least, min_bytes_left(root + "/sys/fs/cgroup" + (memory ? "/memory" : ""), path, memory));
  }
  return least;
}

}  // namespace tessera::detail
