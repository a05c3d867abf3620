#pragma once

#include <nccl.h>

namespace tessera::detail {

/// The functions of NCCL that the engine calls, of the copy that libtorch_cuda has loaded.
struct NcclLibrary {
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGetLastError) get_last_error;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config;
  decltype(&ncclCommInitAll) comm_init_all;
  decltype(&ncclCommGetAsyncError) comm_get_async_error;
  decltype(&ncclCommAbort) comm_abort;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) recv;
};

/// The library; to be asked for after cuda_device(). Throws ConfigError where there is none, or one
/// older than the header that Tessera was compiled with.
const NcclLibrary& nccl_library();

}  // namespace tessera::detail
