#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include "tests/faults/checkpoint_sample.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/skip.hpp"

namespace disk_full_test {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr int cannot_mount = 3;

unsigned long free_blocks(const std::string& path) {
  struct statvfs info {};
  return ::statvfs(path.c_str(), &info) == 0 ? info.f_bfree : 0;
}

/// Saves on a full disk. Run it in a process of its own, so that the mount ends with it.
int save_on_full_disk(const std::string& root) {
  const bool mounted = ::unshare(CLONE_NEWNS) == 0 &&
                       ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       ::mount("tmpfs", root.c_str(), "tmpfs", 0, "size=1m") == 0;
  if (!mounted) return cannot_mount;
  const std::string folder = root + "/latest";
  save_step(folder, 1, 200'000);
  const unsigned long before = free_blocks(root);
  try {
    save_step(folder, 2, 900'000);
    return 4;
  } catch (const FileError& error) {
    const std::string text = error.what();
    if (text.find("No space left on device") == std::string::npos) return 5;
    if (text.find(root) != 1) return 6;
  }
  if (load_step(folder) != 1) return 7;
  if (free_blocks(root) != before) return 8;
  save_step(folder, 3, 200'000);
  return load_step(folder) == 3 ? 0 : 9;
}

}  // namespace

TEST_CASE("a save on a full disk fails, keeps the old checkpoint and gives the space back") {
  const TempFolder root;
  const int code = run_child([&] { return save_on_full_disk(root.path().string()); });
  if (code == cannot_mount) return skip("this process may not mount a small disk");
  CHECK(code == 0);
}

}  // namespace disk_full_test
