#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/comm/cpu/collective_task.hpp>
#include <tessera/framework/comm/internal/tree_reduce.hpp>

namespace tessera::detail {

/// The input and output of a TreeReduceTask: flat contiguous tensors of one dtype. Lists by rank
/// are indexed by a rank's position in `ranks`.
struct TreeReduceBuffers {
  std::vector<int> ranks = {};  ///< participating ranks, ascending
  size_t me = 0;                ///< position of this rank
  Reduce kind = Reduce::sum;
  /// subtree_positions() of each rank.
  std::vector<std::vector<int64_t>> positions = {};
  /// This rank's input to the result of each rank: one tensor for each of its subtrees.
  std::vector<std::vector<at::Tensor>> addends = {};
  /// Receives the result of this rank.
  at::Tensor result = {};
  /// Receive the results of the other ranks; empty if those are not sent to this rank.
  std::vector<at::Tensor> others = {};
};

/// Reduces as ReduceTask does, in segments, but in the order of tree_reduce(): every rank sends the
/// reductions of its subtrees. Where a segment begins changes no bit, since each element has a tree
/// of its own.
class TreeReduceTask final : public CollectiveTask {
 public:
  TreeReduceTask(Transport& transport, uint64_t tag, TreeReduceBuffers buffers);
  void start() override;
  void finish() override;

 private:
  /// The values that one segment of the result is reduced from.
  struct Arriving {
    std::vector<TreeAddend> addends = {};
    std::vector<TransferPtr> transfers = {};
  };

  void post(int64_t index);
  void reduce(int64_t index);
  void send(size_t to, SegmentPurpose purpose, const at::Tensor& tensor);
  uint64_t tag_of(SegmentPurpose purpose, const at::Tensor& tensor) const;

  Transport& transport_;
  uint64_t tag_;
  TreeReduceBuffers buffers_;
  std::vector<Arriving> arriving_;  ///< by segment
  std::vector<TransferPtr> transfers_;
};

}  // namespace tessera::detail
