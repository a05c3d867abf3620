#pragma once

#include <tessera/framework/comm/nccl/nccl_api.hpp>

namespace tessera::detail {

/// The NCCL functions that the engine calls, from the copy that libtorch_cuda has loaded
/// (`get_version` is ncclGetVersion, and so on).
struct NcclLibrary {
  NcclResult (*get_version)(int* version);
  const char* (*get_error_string)(NcclResult result);
  const char* (*get_last_error)(NcclComm* comm);
  NcclResult (*get_unique_id)(NcclId* id);
  NcclResult (*comm_init_rank_config)(NcclComm** comm, int ranks, NcclId id, int rank,
                                      NcclConfig* config);
  NcclResult (*comm_init_all)(NcclComm** comms, int count, const int* devices);
  NcclResult (*comm_get_async_error)(NcclComm* comm, NcclResult* error);
  NcclResult (*comm_abort)(NcclComm* comm);
  NcclResult (*group_start)();
  NcclResult (*group_end)();
  NcclResult (*all_reduce)(const void* send, void* receive, size_t count, NcclType type, NcclOp op,
                           NcclComm* comm, NcclStream stream);
  NcclResult (*all_gather)(const void* send, void* receive, size_t count, NcclType type,
                           NcclComm* comm, NcclStream stream);
  NcclResult (*reduce_scatter)(const void* send, void* receive, size_t count, NcclType type,
                               NcclOp op, NcclComm* comm, NcclStream stream);
  NcclResult (*send)(const void* buffer, size_t count, NcclType type, int peer, NcclComm* comm,
                     NcclStream stream);
  NcclResult (*recv)(void* buffer, size_t count, NcclType type, int peer, NcclComm* comm,
                     NcclStream stream);
};

/// Returns the library; call gpu() first. Throws ConfigError if NCCL is missing, or older than the
/// version of NcclConfig.
const NcclLibrary& nccl_library();

}  // namespace tessera::detail
