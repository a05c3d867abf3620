#pragma once

#include <memory>

#include <tessera/framework/tensor/internal/bucket.hpp>
#include <tessera/framework/tensor/internal/relayout_step.hpp>

namespace tessera::detail {

/// Reduce-scatters several partial sums of one mesh in one exchange. From start() on, this process
/// holds the whole values no longer: their handles are of the shards that arrive, and reading one
/// waits for it.
class ScatterBucket final : public ReductionBucket {
 public:
  ScatterBucket();
  /// Whether a reduce-scatter alone moves the value to the layout of `target`, and it fits those
  /// added before: the same dtype, mesh dimensions and block structure.
  bool fits(const DTensor& value, const ShardingPtr& target) const override;
  CommEntry add(const DTensor& value, const ShardingPtr& target, const MemoryOrder& order) override;
  /// Until finish() there are the shards and what is sent: a flat copy, or a single value whose
  /// shards are in order in its memory.
  PlannedReductions planned_memory() const override;
  void start() override;
  bool done() const override;
  void wait() override;
  void finish() override;

 private:
  class Exchange;
  class Arriving;
  std::shared_ptr<Exchange> exchange_;
};

}  // namespace tessera::detail
