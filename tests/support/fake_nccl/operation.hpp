#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/comm/nccl/nccl_api.hpp>

namespace tessera::test::fake_nccl {

using namespace detail;

/// One NCCL call as messages between ranks, with the addresses of kernels.
struct Operation {
  struct Letter {
    int to;
    const char* data;
    size_t bytes;
  };

  std::string name;  ///< description that its ranks must agree on
  std::vector<Letter> letters;
  std::vector<int> senders;  ///< ranks whose messages are awaited
  /// Computes the result from the messages' bytes, in the order of `senders`.
  std::function<void(const std::vector<std::string>&)> combine;
};

Operation all_reduce(int ranks, const void* send, void* receive, size_t count, NcclType type,
                     NcclOp op);
Operation all_gather(int ranks, const void* send, void* receive, size_t count, NcclType type);
Operation reduce_scatter(int ranks, const void* send, void* receive, size_t count, NcclType type,
                         NcclOp op);
Operation send(const void* buffer, size_t count, NcclType type, int peer);
Operation recv(void* buffer, size_t count, NcclType type, int peer);

}  // namespace tessera::test::fake_nccl
