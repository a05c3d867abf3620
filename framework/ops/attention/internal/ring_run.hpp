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

/// One run of ring attention on all blocks of this process. What a member computes with are its
/// runs of steps, (n, heads, steps, features) each; keys and values, and behind them their
/// gradients, go on to the next member while it computes.
class RingRun {
 public:
  RingRun(const AttentionTerms& terms, bool zigzag, const BlockGrid& grid, size_t first_mask);

  /// Of each block the result and the logarithms of sums.
  std::vector<Tensors> forward();
  /// Of each block the gradients of query, key and value, the latter for each head of the query: in
  /// the first of those that share one, 0 in the others.
  std::vector<Tensors> backward();

 private:
  /// A tensor by the runs of its member; such tensors of each block.
  using Runs = std::vector<at::Tensor>;
  using Values = std::vector<Runs>;
  /// Keys and values, or their gradients, of each block.
  struct Pairs {
    Values keys, values;
  };
  /// Gradients of one of the runs that a block has at present.
  struct Part {
    size_t run = 0;
    at::Tensor keys, values;
  };

  size_t blocks() const { return grid_.blocks.size(); }
  int64_t member(size_t block) const { return group_.member(block); }
  /// Calls function(b) for each block, in its device's name.
  template <class Function>
  void each(const Function& function) const {
    run_blocks(grid_.devices, grid_.parallel, [&](int64_t b) {
      const DeviceMemory::For device(b);
      function(size_t(b));
    });
  }

  // What travels: ring_travel.cpp.
  void bring(std::vector<std::vector<at::Tensor>> more);
  std::vector<Values> spread(const std::vector<std::vector<at::Tensor>>& tensors) const;
  std::vector<std::vector<at::Tensor>> collect(const std::vector<Values>& values) const;
  std::vector<PackedPart> forms(size_t block, int64_t source, at::ScalarType dtype) const;
  std::vector<at::Tensor> packs(const Pairs& pairs) const;
  Pairs unpacked_at(const std::vector<at::Tensor>& packs, int64_t hop, at::ScalarType dtype) const;
  PermuteGroup::Transfer pass_on(const std::vector<at::Tensor>& packs, int64_t members, int64_t hop,
                                 at::ScalarType dtype) const;
  void log(bool backward) const;

  // What is computed.
  bool gives_means() const;
  bool idle(size_t block) const;
  AttentionPart part_of(size_t block, size_t run, Interval rows, Interval keys) const;
  LocalAttention local(size_t block, int64_t hop, RingSchedule::Pair pair, const Pairs& at) const;
  void finish(size_t block, Values& y, Values& sums, const at::Tensor& total) const;
  at::Tensor lost(size_t block) const;
  std::vector<Part> gradients(size_t block, int64_t hop, const Pairs& at, Runs& dq) const;
  Interval heads_of(size_t block, int64_t shared) const;
  at::Tensor by_shared_head(size_t block, const at::Tensor& x) const;
  at::Tensor by_head(size_t block, const at::Tensor& x, bool all) const;

  const AttentionTerms& terms_;
  const BlockGrid& grid_;
  const size_t first_mask_;
  const int64_t axis_;  ///< of the steps
  const int64_t steps_;
  const at::ScalarType dtype_, wide_;  ///< of what goes in, and of what is summed
  RingSchedule shards_;                ///< of the mesh, which logs tell of
  RingSchedule members_;               ///< of the blocks, of which one may stand for several shards
  PermuteGroup group_;
  Values q_, y_, sums_, dy_;
  Pairs own_;
  std::vector<Values> masks_;  ///< of each block: by mask
};

}  // namespace tessera::detail
