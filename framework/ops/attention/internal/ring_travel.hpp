#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tessera/framework/ops/attention/internal/attention_terms.hpp>
#include <tessera/framework/ops/attention/internal/ring_schedule.hpp>
#include <tessera/framework/ops/engine/block_grid.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/collective_permute.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>

namespace tessera::detail {

/// The values that the blocks of this process hold in ring attention, and their transfers. A
/// member's runs of steps are (n, heads, steps, features); keys and values, followed by their
/// gradients, are sent to the next member.
class RingTravel {
 protected:
  /// A tensor split into the runs of its member; one such tensor per block.
  using Runs = std::vector<at::Tensor>;
  using Values = std::vector<Runs>;
  /// Keys and values, or their gradients, of each block.
  struct KeyValues {
    Values keys, values;
  };

  RingTravel(const AttentionTerms& terms, bool zigzag, const BlockGrid& grid, size_t first_mask);

  size_t blocks() const { return grid_.blocks.size(); }
  int64_t member(size_t block) const { return group_.member(block); }
  bool has_masks() const { return grid_.specs.size() > first_mask_; }
  /// Calls function(b) for each block, whose device is charged for the memory.
  template <class Function>
  void each(const Function& function) const {
    run_blocks(grid_.devices, grid_.parallel, [&](int64_t b) {
      const DeviceMemory::For device(b);
      function(size_t(b));
    });
  }

  void split_inputs(std::vector<std::vector<at::Tensor>> more);
  std::vector<std::vector<at::Tensor>> join_runs(const std::vector<Values>& values) const;
  std::vector<PackedSpec> packed_specs(size_t block, int64_t source, at::ScalarType dtype) const;
  std::vector<at::Tensor> packs(const KeyValues& key_values) const;
  KeyValues unpacked_at(const std::vector<at::Tensor>& packs, int64_t hop,
                        at::ScalarType dtype) const;
  PermuteGroup::Transfer rotate(const std::vector<at::Tensor>& packs, int64_t members, int64_t hop,
                                at::ScalarType dtype) const;
  void log(bool backward) const;

  const BlockGrid& grid_;
  const size_t first_mask_;
  const int64_t axis_;  ///< axis of steps
  const int64_t steps_;
  const at::ScalarType dtype_, wide_;  ///< dtype of the inputs; of sums
  RingSchedule members_;               ///< schedule of the blocks, each of one or several shards
  Values q_, y_, lse_, dy_;
  KeyValues own_;
  std::vector<Values> masks_;  ///< each block's masks

 private:
  std::vector<Values> split_runs(const std::vector<std::vector<at::Tensor>>& tensors) const;

  RingSchedule shards_;  ///< schedule of the mesh's shards, for logs
  PermuteGroup group_;
};

}  // namespace tessera::detail
