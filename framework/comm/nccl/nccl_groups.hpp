#pragma once

#include <map>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/comm/nccl/nccl_communicators.hpp>
#include <tessera/framework/comm/nccl/nccl_engine.hpp>

namespace tessera::detail {

/// The groups of ranks that exchange tensors between GPUs. Each group has its own NCCL
/// communicator, created at its first use.
class NcclGroups {
 public:
  /// A tensor sent to another rank, or received from it.
  struct Message {
    int peer;
    bool sends;
    at::Tensor tensor;
  };

  /// Creates the communicator of all ranks. Collective.
  NcclGroups(const NcclOptions& options, const Gpu& device);

  /// Returns the communicator of these ranks, in ascending order. Collective over the ranks; call
  /// it with the GPU's communication stream as the current one.
  NcclComm* of(const std::vector<int>& ranks);
  /// Sends and receives all messages at once; both ranks of a pair must list its messages in the
  /// same order. Tensors are contiguous and on the GPU; empty ones are not sent.
  void exchange(const std::vector<Message>& messages);

  const std::shared_ptr<NcclCommunicators>& communicators() const { return communicators_; }
  NcclStream stream() const { return stream_; }

 private:
  NcclId share_id(const std::vector<int>& ranks);

  const int rank_;
  const Gpu& device_;
  const NcclStream stream_;
  const std::shared_ptr<NcclCommunicators> communicators_;
  NcclComm* world_ = nullptr;
  std::map<std::vector<int>, NcclComm*> groups_;
};

}  // namespace tessera::detail
