#include <tessera/framework/base/internal/host_memory.hpp>

#include <filesystem>
#include <limits>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace host_memory_test {

using namespace tessera::detail;
using tessera::test::TempFolder;

namespace {

void put(const TempFolder& root, const std::string& path, const std::string& text) {
  const std::string file = root / path;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path());
  tessera::test::write_file(file, text);
}

/// Sets up a machine with 8 of 16 GiB available.
void put_machine(const TempFolder& root) {
  put(root, "proc/meminfo",
      "MemTotal:       16777216 kB\nMemFree:  1024 kB\n"
      "MemAvailable:    8388608 kB\n");
}

constexpr uint64_t gib = uint64_t{1} << 30;

}  // namespace

TEST_CASE("available memory is the machine's unless a control group has less") {
  const TempFolder root;
  CHECK(available_memory(root.path()) == std::numeric_limits<uint64_t>::max());
  put_machine(root);
  CHECK(available_memory(root.path()) == 8 * gib);
  put(root, "proc/self/cgroup", "0::/a/b\n");
  put(root, "sys/fs/cgroup/a/b/memory.max", "max\n");
  put(root, "sys/fs/cgroup/a/b/memory.current", "1000\n");
  CHECK(available_memory(root.path()) == 8 * gib);
}

TEST_CASE("the tightest of a container's groups counts, without page cache") {
  const TempFolder root;
  put_machine(root);
  put(root, "proc/self/cgroup", "0::/a/b\n");
  put(root, "sys/fs/cgroup/a/b/memory.max", std::to_string(4 * gib));
  put(root, "sys/fs/cgroup/a/b/memory.current", std::to_string(3 * gib));
  put(root, "sys/fs/cgroup/a/b/memory.stat",
      "anon 5\ninactive_file " + std::to_string(2 * gib) + "\n");
  CHECK(available_memory(root.path()) == 3 * gib);
  put(root, "sys/fs/cgroup/a/memory.max", std::to_string(2 * gib));
  put(root, "sys/fs/cgroup/a/memory.current", std::to_string(gib));
  CHECK(available_memory(root.path()) == gib);
  // Inside its own cgroup namespace, a process sees its group as the root.
  put(root, "proc/self/cgroup", "0::/\n");
  put(root, "sys/fs/cgroup/memory.max", std::to_string(gib));
  put(root, "sys/fs/cgroup/memory.current", std::to_string(2 * gib));
  CHECK(available_memory(root.path()) == 0);
}

TEST_CASE("version 1 of control groups is read too") {
  const TempFolder root;
  put_machine(root);
  put(root, "proc/self/cgroup", "11:cpu,cpuacct:/x\n4:memory:/docker/0a\n1:name=systemd:/y\n");
  put(root, "sys/fs/cgroup/memory/docker/0a/memory.limit_in_bytes", std::to_string(2 * gib));
  put(root, "sys/fs/cgroup/memory/docker/0a/memory.usage_in_bytes", std::to_string(gib));
  put(root, "sys/fs/cgroup/memory/docker/0a/memory.stat",
      "inactive_file 7\ntotal_inactive_file 24\n");
  CHECK(available_memory(root.path()) == gib + 24);
}

TEST_CASE("this machine has memory available") {
  CHECK(available_memory() > 1 << 20);
  CHECK(available_memory() < uint64_t{1} << 50);
}

}  // namespace host_memory_test
