#include <tessera/framework/comm/nccl/nccl_library.hpp>

#include <string>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/loaded_library.hpp>

namespace tessera::detail {
namespace {

std::string version_text(int code) {
  return str(code / 10000, ".", code / 100 % 100, ".", code % 100);
}

NcclLibrary load() {
  // Uses the copy that libtorch_cuda has loaded: two copies in a process would share no state.
  const LoadedLibrary library(
      {"libnccl.so.2"}, {.component = "nccl",
                         .rule = "collectives between GPUs need NCCL, as torch installs it",
                         .fix = "install the nvidia-nccl package that the torch in use asks for"});
  NcclLibrary nccl{};
  library.find("ncclGetVersion", nccl.get_version);
  library.find("ncclGetErrorString", nccl.get_error_string);
  library.find("ncclGetLastError", nccl.get_last_error);
  library.find("ncclGetUniqueId", nccl.get_unique_id);
  library.find("ncclCommInitRankConfig", nccl.comm_init_rank_config);
  library.find("ncclCommInitAll", nccl.comm_init_all);
  library.find("ncclCommGetAsyncError", nccl.comm_get_async_error);
  library.find("ncclCommAbort", nccl.comm_abort);
  library.find("ncclGroupStart", nccl.group_start);
  library.find("ncclGroupEnd", nccl.group_end);
  library.find("ncclAllReduce", nccl.all_reduce);
  library.find("ncclAllGather", nccl.all_gather);
  library.find("ncclReduceScatter", nccl.reduce_scatter);
  library.find("ncclSend", nccl.send);
  library.find("ncclRecv", nccl.recv);
  int version = 0;
  if (nccl.get_version(&version) != NcclResult::success) {
    library.fail(str(library.name(), " does not report its version"));
  }
  constexpr unsigned int oldest = NcclConfig().version;
  if (version < static_cast<int>(oldest)) {
    library.fail(str("version ", version_text(version), ", older than ", version_text(oldest)));
  }
  return nccl;
}

}  // namespace

const NcclLibrary& nccl_library() {
  static const NcclLibrary library = load();
  return library;
}

}  // namespace tessera::detail
