#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tessera/framework/ops/attention/internal/ring_travel.hpp>

namespace tessera::detail {

/// One run of ring attention on all blocks of this process: a member computes on its runs of steps
/// with the keys and values that it holds at present.
class RingRun : private RingTravel {
 public:
  RingRun(const AttentionTerms& terms, bool zigzag, const BlockGrid& grid, size_t first_mask)
      : RingTravel(terms, zigzag, grid, first_mask), terms_(terms) {}

  /// Returns each block's output and log-sum-exp.
  std::vector<Tensors> forward();
  /// Returns each block's gradients of query, key and value. Those of key and value are per query
  /// head: in the first head of each group, with 0 in the others.
  std::vector<Tensors> backward();

 private:
  /// Gradients of one of the runs of keys that a block holds at present.
  struct KeyGradients {
    size_t run = 0;
    at::Tensor keys, values;
  };

  bool gives_means() const { return !terms_.zeros && has_masks(); }
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
};

}  // namespace tessera::detail
