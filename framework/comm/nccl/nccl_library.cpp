#include <tessera/framework/comm/nccl/nccl_library.hpp>

#include <dlfcn.h>

#include <string>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

constexpr const char* file_name = "libnccl.so.2";

[[noreturn]] void fail(const std::string& received) {
  throw ConfigError("nccl", "collectives between GPUs need NCCL, as torch installs it", received,
                    "install the nvidia-nccl package that the torch in use asks for");
}

void* open_library() {
  // libtorch_cuda has loaded its copy; two of them in a process would not know of each other.
  void* library = dlopen(file_name, RTLD_NOW | RTLD_NOLOAD);
  if (!library) library = dlopen(file_name, RTLD_NOW);
  if (library) return library;
  const char* why = dlerror();
  fail(str(file_name, " cannot be loaded: ", why ? why : "no reason given"));
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function) fail(str(file_name, " lacks ", name));
}

std::string version_text(int code) {
  return str(code / 10000, ".", code / 100 % 100, ".", code % 100);
}

NcclLibrary load() {
  void* library = open_library();
  NcclLibrary nccl{};
  find(library, "ncclGetVersion", nccl.get_version);
  find(library, "ncclGetErrorString", nccl.get_error_string);
  find(library, "ncclGetLastError", nccl.get_last_error);
  find(library, "ncclGetUniqueId", nccl.get_unique_id);
  find(library, "ncclCommInitRankConfig", nccl.comm_init_rank_config);
  find(library, "ncclCommInitAll", nccl.comm_init_all);
  find(library, "ncclCommGetAsyncError", nccl.comm_get_async_error);
  find(library, "ncclCommAbort", nccl.comm_abort);
  find(library, "ncclGroupStart", nccl.group_start);
  find(library, "ncclGroupEnd", nccl.group_end);
  find(library, "ncclAllReduce", nccl.all_reduce);
  find(library, "ncclAllGather", nccl.all_gather);
  find(library, "ncclReduceScatter", nccl.reduce_scatter);
  find(library, "ncclSend", nccl.send);
  find(library, "ncclRecv", nccl.recv);
  int version = 0;
  if (nccl.get_version(&version) != ncclSuccess) fail(str(file_name, " does not tell its version"));
  // An older one does not know the configuration that the header describes.
  if (version < NCCL_VERSION_CODE) {
    fail(str("version ", version_text(version), ", older than ", version_text(NCCL_VERSION_CODE),
             ", whose header Tessera was compiled with"));
  }
  return nccl;
}

}  // namespace

const NcclLibrary& nccl_library() {
  static const NcclLibrary library = load();
  return library;
}

}  // namespace tessera::detail
