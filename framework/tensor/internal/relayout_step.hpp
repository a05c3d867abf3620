#pragma once

#include <memory>
#include <vector>

#include <tessera/framework/tensor/internal/relayout.hpp>

namespace tessera::detail {

/// Returns the mesh dimensions of a mask, ascending.
std::vector<int> dims_of(DimMask mask);
/// Returns the mask of mesh dimensions.
DimMask mask_of(const std::vector<int>& dims);

/// Runs one step of a relayout on a value that is in the step's source layout. Collective, except
/// for a slice.
DTensor run_step(const DTensor& value, const RelayoutStep& step);

/// One exchange for the same step of several values, an all-gather or a reduce-scatter, which may
/// run while other work does. Results and their bits are those of run_step(), and the comm log has
/// one entry with the bytes of all. Which values are added, in which order, and when the step is
/// started and finished, is the same on every process.
class JointStep {
 public:
  JointStep();
  ~JointStep();
  JointStep(JointStep&&) noexcept;
  JointStep& operator=(JointStep&&) noexcept;

  /// Whether the value, in the step's source layout, may be added to those added before: the same
  /// step over the same mesh dimensions, dtype and block structure. Axes may differ.
  bool fits(const DTensor& value, const RelayoutStep& step) const;
  void add(const DTensor& value, const RelayoutStep& step);
  /// Begins the exchange, and releases the values. Collective. Throws CommError.
  void start();
  /// Whether wait() would not block.
  bool done() const;
  /// Blocks until the exchange is done. Throws CommError.
  void wait();
  /// Waits, and returns the results in the order of add(); no value is left.
  std::vector<DTensor> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the blocks of `to` as views of the blocks of `from` that cover them. Used by
/// split_blocks() and by steps that only slice.
Blocks slice_blocks(const Sharding& from, const Blocks& blocks, const Sharding& to);

/// Splits a value into the finer blocks of a sharding of the same layout. A partial sum of several
/// of these blocks goes to the first; the others are undefined.
DTensor split_blocks(const DTensor& value, const ShardingPtr& finer);

}  // namespace tessera::detail
