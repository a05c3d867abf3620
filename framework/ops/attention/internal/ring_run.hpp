#pragma once

#include <utility>
#include <vector>

#include <tessera/framework/ops/attention/internal/attention_terms.hpp>
#include <tessera/framework/ops/attention/internal/ring_schedule.hpp>
#include <tessera/framework/ops/engine/block_grid.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/collective_permute.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>

namespace tessera::detail {

/// One run of ring attention on all blocks of this process. A member computes on its runs of steps,
/// each (n, heads, steps, features), while keys and values, followed by their gradients, are sent
/// to the next member.
class RingRun {
 public:
  RingRun(const AttentionTerms& terms, bool zigzag, const BlockGrid& grid, size_t first_mask);

  /// Returns each block's output and log-sum-exp.
  std::vector<Tensors> forward();
  /// Returns each block's gradients of query, key and value. Those of key and value are per query
  /// head: in the first head of each group, with 0 in the others.
  std::vector<Tensors> backward();

 private:
  /// A tensor split into the runs of its member; one such tensor per block.
  using Runs = std::vector<at::Tensor>;
  using Values = std::vector<Runs>;
  /// Keys and values, or their gradients, of each block.
  struct KeyValues {
    Values keys, values;
  };
  /// Gradients of one of the runs of keys that a block holds at present.
  struct KeyGradients {
    size_t run = 0;
    at::Tensor keys, values;
  };

  size_t blocks() const { return grid_.blocks.size(); }
  int64_t member(size_t block) const { return group_.member(block); }
  /// Calls function(b) for each block, whose device is charged for the memory.
  template <class Function>
  void each(const Function& function) const {
    run_blocks(grid_.devices, grid_.parallel, [&](int64_t b) {
      const DeviceMemory::For device(b);
      function(size_t(b));
    });
  }

  // Transfers: ring_travel.cpp.
  void split_inputs(std::vector<std::vector<at::Tensor>> more);
  std::vector<Values> split_runs(const std::vector<std::vector<at::Tensor>>& tensors) const;
  std::vector<std::vector<at::Tensor>> join_runs(const std::vector<Values>& values) const;
  std::vector<PackedSpec> packed_specs(size_t block, int64_t source, at::ScalarType dtype) const;
  std::vector<at::Tensor> packs(const KeyValues& key_values) const;
  KeyValues unpacked_at(const std::vector<at::Tensor>& packs, int64_t hop,
                        at::ScalarType dtype) const;
  PermuteGroup::Transfer rotate(const std::vector<at::Tensor>& packs, int64_t members, int64_t hop,
                                at::ScalarType dtype) const;
  void log(bool backward) const;

  // Computation.
  bool gives_means() const;
  bool idle(size_t block) const;
  BlockAttention tile_attention(size_t block, size_t run, Interval rows, Interval keys) const;
  LocalAttention local(size_t block, int64_t hop, RingSchedule::Tile tile,
                       const KeyValues& held) const;
  void finish(size_t block, Values& y, Values& lse, const at::Tensor& total) const;
  at::Tensor mean_gradient(size_t block) const;
  std::vector<KeyGradients> gradients(size_t block, int64_t hop, const KeyValues& held,
                                      Runs& dq) const;
  Interval heads_of(size_t block, int64_t shared) const;
  at::Tensor reduce_query_groups(size_t block, const at::Tensor& x) const;
  at::Tensor expand_query_groups(size_t block, const at::Tensor& x, bool all) const;

  const AttentionTerms& terms_;
  const BlockGrid& grid_;
  const size_t first_mask_;
  const int64_t axis_;  ///< axis of steps
  const int64_t steps_;
  const at::ScalarType dtype_, wide_;  ///< dtype of the inputs; of sums
  RingSchedule shards_;                ///< schedule of the mesh's shards, for logs
  RingSchedule members_;               ///< schedule of the blocks, each of one or several shards
  PermuteGroup group_;
  Values q_, y_, lse_, dy_;
  KeyValues own_;
  std::vector<Values> masks_;  ///< each block's masks
};

}  // namespace tessera::detail
