#pragma once

#include <map>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/comm/nccl/nccl_communicators.hpp>
#include <tessera/framework/comm/nccl/nccl_engine.hpp>

namespace tessera::detail {

/// The groups of ranks that exchange tensors by the GPUs of their processes, each with an NCCL
/// communicator of its own that is made when the group first needs it.
class NcclGroups {
 public:
  /// A tensor on its way to or from another rank.
  struct Message {
    int peer;
    bool sends;
    at::Tensor tensor;
  };

  /// Makes the communicator of all ranks. Collective.
  NcclGroups(const NcclOptions& options, const Gpu& device);

  /// The communicator of these ranks, ascending. Collective over them; to be called with the GPU's
  /// communication stream in force.
  NcclComm* of(const std::vector<int>& ranks);
  /// Messages between pairs of ranks, all at a time; those of one pair in the order given, on both
  /// sides. Dense tensors on the GPU; empty ones are not sent.
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
