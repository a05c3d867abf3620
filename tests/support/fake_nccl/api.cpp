// NCCL's functions, as NcclLibrary loads them from a libnccl.so.2.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/fake_gpu/recording.hpp"
#include "tests/support/fake_gpu/streams.hpp"
#include "tests/support/fake_nccl/communicator.hpp"
#include "tests/support/fake_nccl/fake_nccl.hpp"

namespace tessera::detail {

/// Never freed, so that use after an abort is detected.
struct NcclComm {
  std::shared_ptr<test::fake_nccl::Communicator> state;
};

}  // namespace tessera::detail

namespace tessera::test::fake_nccl {

namespace {

/// The operations of this thread's current group.
struct Asked {
  NcclComm* comm;
  c10::Stream stream;
  std::vector<Operation> operations;
};
thread_local std::vector<Asked> group;
thread_local int depth = 0;

std::atomic<int> living = 0;

Communicator& of(NcclComm* comm) {
  if (!comm->state) {
    std::fprintf(stderr, "fake NCCL: a communicator was used after its abort\n");
    std::abort();
  }
  return *comm->state;
}

NcclComm* make(const NcclId& id, int size, int rank, bool blocks) {
  ++living;
  return new NcclComm{std::make_shared<Communicator>(id.internal, size, rank, blocks)};
}

NcclResult end_group() {
  NcclResult result = NcclResult::success;
  for (Asked& asked : group) {
    const NcclResult begun = of(asked.comm).begin(std::move(asked.operations), asked.stream);
    if (begun != NcclResult::success) result = begun;
  }
  group.clear();
  return result;
}

/// The real NCCL supports recording.
void refuse_on_recording(NcclStream stream) {
  try {
    fake_gpu::refuse_on_recording(fake_gpu::stream_of(stream), "NCCL");
  } catch (...) {
    // The caller expects result codes rather than exceptions, and does not end its group.
    group.clear();
    depth = 0;
    throw;
  }
}

NcclResult add(NcclComm* comm, NcclStream stream, Operation operation) {
  if (group.empty() || group.back().comm != comm) {
    of(comm);
    refuse_on_recording(stream);
    group.push_back({comm, fake_gpu::stream_of(stream), {}});
  }
  group.back().operations.push_back(std::move(operation));
  return depth == 0 ? end_group() : NcclResult::success;
}

}  // namespace

int alive() { return living; }

extern "C" {

NcclResult ncclGetVersion(int* version) {
  *version = 22809;
  return NcclResult::success;
}

const char* ncclGetErrorString(NcclResult result) {
  if (result == invalid_usage) return "invalid usage";
  if (result == remote_error) return "remote process exited or there was a network error";
  return "no error";
}

const char* ncclGetLastError(NcclComm* comm) {
  return comm && comm->state ? comm->state->what_is_wrong().c_str() : "";
}

NcclResult ncclGetUniqueId(NcclId* id) {
  const std::string path = (std::filesystem::temp_directory_path() / "fake_nccl_XXXXXX").string();
  if (path.size() >= sizeof id->internal) return invalid_usage;
  std::strcpy(id->internal, path.c_str());
  return mkdtemp(id->internal) ? NcclResult::success : invalid_usage;
}

NcclResult ncclCommInitRankConfig(NcclComm** comm, int ranks, NcclId id, int rank,
                                  NcclConfig* config) {
  *comm = make(id, ranks, rank, config->blocking != 0);
  return (*comm)->state->state();
}

NcclResult ncclCommInitAll(NcclComm** comms, int count, const int*) {
  NcclId id{};
  const NcclResult result = ncclGetUniqueId(&id);
  for (int rank = 0; rank < count; ++rank) comms[rank] = make(id, count, rank, true);
  return result;
}

NcclResult ncclCommGetAsyncError(NcclComm* comm, NcclResult* error) {
  *error = of(comm).state();
  return NcclResult::success;
}

NcclResult ncclCommAbort(NcclComm* comm) {
  of(comm).abort();
  comm->state.reset();
  --living;
  return NcclResult::success;
}

NcclResult ncclGroupStart() {
  ++depth;
  return NcclResult::success;
}

NcclResult ncclGroupEnd() { return --depth == 0 ? end_group() : NcclResult::success; }

NcclResult ncclAllReduce(const void* from, void* to, size_t count, NcclType type, NcclOp op,
                         NcclComm* comm, NcclStream stream) {
  return add(comm, stream, all_reduce(of(comm).size(), from, to, count, type, op));
}

NcclResult ncclAllGather(const void* from, void* to, size_t count, NcclType type, NcclComm* comm,
                         NcclStream stream) {
  return add(comm, stream, all_gather(of(comm).size(), from, to, count, type));
}

NcclResult ncclReduceScatter(const void* from, void* to, size_t count, NcclType type, NcclOp op,
                             NcclComm* comm, NcclStream stream) {
  return add(comm, stream, reduce_scatter(of(comm).size(), from, to, count, type, op));
}

NcclResult ncclSend(const void* buffer, size_t count, NcclType type, int peer, NcclComm* comm,
                    NcclStream stream) {
  return add(comm, stream, send(buffer, count, type, peer));
}

NcclResult ncclRecv(void* buffer, size_t count, NcclType type, int peer, NcclComm* comm,
                    NcclStream stream) {
  return add(comm, stream, recv(buffer, count, type, peer));
}

}  // extern "C"

}  // namespace tessera::test::fake_nccl
