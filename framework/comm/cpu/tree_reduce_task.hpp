#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/comm/cpu/collective_task.hpp>
#include <tessera/framework/comm/internal/tree_reduce.hpp>

namespace tessera::detail {

/// The input and output of a TreeReduceTask.
struct TreeReduceBuffers : ReduceOutputs {
  /// subtree_positions() of each rank.
  std::vector<std::vector<int64_t>> positions;
  /// This rank's input to the result of each rank: one tensor for each of its subtrees.
  std::vector<std::vector<at::Tensor>> addends;
};

/// Reduces in the order of tree_reduce(): every rank sends the reductions of its subtrees. Where a
/// segment begins changes no bit, since each element has a tree of its own.
class TreeReduceTask final : public SegmentedReduce {
 public:
  TreeReduceTask(Transport& transport, uint64_t tag, TreeReduceBuffers buffers);

 private:
  /// The values that one segment of the result is reduced from.
  struct Arriving {
    std::vector<TreeAddend> addends = {};
    std::vector<TransferPtr> transfers = {};
  };

  void post(int64_t index) override;
  void reduce(int64_t index) override;
  void send_addends(size_t to) override;

  std::vector<std::vector<int64_t>> positions_;
  std::vector<std::vector<at::Tensor>> addends_;
  std::vector<Arriving> arriving_;  ///< by segment
};

}  // namespace tessera::detail
