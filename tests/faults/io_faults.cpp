#include "tests/faults/io_faults.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tessera::test {
namespace {

IoFaults armed;
std::vector<IoCall>* recorded = nullptr;

std::string path_of(int descriptor) {
  std::array<char, 4096> target{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), target.data(), target.size());
  return size < 0 ? "" : std::string(target.data(), static_cast<size_t>(size));
}

/// Returns whether this is the call that the fault applies to. Ends the process if the fault is a
/// crash.
bool hits_fault(const char* name, std::string path) {
  if (recorded == nullptr) return false;
  recorded->push_back({name, std::move(path)});
  if (static_cast<int>(recorded->size()) != armed.at) return false;
  if (armed.crash) ::_exit(crash_exit_code);
  return true;
}

bool fails(const char* name, std::string path) {
  if (!hits_fault(name, std::move(path)) || armed.error == 0) return false;
  errno = armed.error;
  return true;
}

bool is_elsewhere() { return recorded != nullptr && !armed.machine.empty(); }

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

void start_io_faults(const IoFaults& faults) {
  static std::vector<IoCall> calls;
  calls.clear();
  armed = faults;
  recorded = &calls;
}

std::vector<IoCall> stop_io_faults() { return std::move(*std::exchange(recorded, nullptr)); }

std::vector<std::string> open_files() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    paths.push_back(path_of(std::stoi(entry.path().filename().string())));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace tessera::test

// These functions replace the C library's of the same name in programs that link this file.
extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (tessera::test::fails("open", path)) return -1;
  return tessera::test::real<int(const char*, int, ...)>("open")(path, flags, mode);
}

int close(int descriptor) {
  const bool failed = tessera::test::fails("close", tessera::test::path_of(descriptor));
  const int error = errno;
  const int result = tessera::test::real<int(int)>("close")(descriptor);
  if (!failed) return result;
  errno = error;
  return -1;
}

ssize_t write(int descriptor, const void* bytes, size_t size) {
  using Write = ssize_t(int, const void*, size_t);
  if (tessera::test::hits_fault("write", tessera::test::path_of(descriptor))) {
    if (tessera::test::armed.short_write) size = (size + 1) / 2;
    errno = tessera::test::armed.error;
    if (errno != 0) return -1;
  }
  return tessera::test::real<Write>("write")(descriptor, bytes, size);
}

int fsync(int descriptor) {
  if (tessera::test::fails("fsync", tessera::test::path_of(descriptor))) return -1;
  return tessera::test::real<int(int)>("fsync")(descriptor);
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (tessera::test::fails("mkdir", path)) return -1;
  return tessera::test::real<int(const char*, mode_t)>("mkdir")(path, mode);
}

int rename(const char* from, const char* to) noexcept {
  if (tessera::test::fails("rename", to)) return -1;
  return tessera::test::real<int(const char*, const char*)>("rename")(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  using Rename = int(int, const char*, int, const char*, unsigned);
  if (tessera::test::fails("renameat2", to)) return -1;
  if (tessera::test::recorded != nullptr && tessera::test::armed.no_exchange) {
    errno = EINVAL;
    return -1;
  }
  return tessera::test::real<Rename>("renameat2")(from_folder, from, to_folder, to, flags);
}

int unlink(const char* path) noexcept {
  if (tessera::test::fails("unlink", path)) return -1;
  return tessera::test::real<int(const char*)>("unlink")(path);
}

int rmdir(const char* path) noexcept {
  if (tessera::test::fails("rmdir", path)) return -1;
  return tessera::test::real<int(const char*)>("rmdir")(path);
}

int flock(int descriptor, int operation) noexcept {
  if (tessera::test::is_elsewhere()) return 0;
  return tessera::test::real<int(int, int)>("flock")(descriptor, operation);
}

int gethostname(char* name, size_t size) noexcept {
  if (!tessera::test::is_elsewhere()) {
    return tessera::test::real<int(char*, size_t)>("gethostname")(name, size);
  }
  ::strncpy(name, tessera::test::armed.machine.c_str(), size);
  return 0;
}

}  // extern "C"
