#pragma once

#include <span>
#include <vector>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/ops/engine/op.hpp>
#include <tessera/framework/ops/engine/propagate.hpp>
#include <tessera/framework/tensor/internal/op_listener.hpp>

namespace tessera::detail {

/// Adds or removes a tape of this thread; the last added is called first.
void push_tape(OpListener* tape);
void remove_tape(OpListener* tape);
/// Scope in which no tape records operations of this thread.
class NoRecording {
 public:
  NoRecording();

 private:
  ScopedValue<std::vector<OpListener*>> tapes_;
};

/// Runs an operation: propagates layouts, reshards inputs, runs forward on every local block. Plans
/// are cached per thread, by operation, attributes, shardings and policy.
std::vector<DTensor> dispatch(const OpInfo& info, const void* op, size_t attributes,
                              std::span<const DTensor> in);

/// Returns whether a tape records this thread's operations, and how many do.
bool recording();
size_t recording_tapes();

/// Returns the layouts that dispatch() would choose, without running anything.
Propagation plan_op(const OpInfo& info, const void* op, const std::vector<ShardingPtr>& in,
                    uint32_t parameters = 0);

/// Numbers of plans made and reused by this thread.
struct PlanStats {
  int64_t made = 0;
  int64_t reused = 0;
};
PlanStats plan_stats();

template <Operation Op>
DTensor run_op(const Op& op, std::initializer_list<DTensor> in) {
  return std::move(dispatch(op_info<Op>(), &op, attribute_hash(op),
                            std::span<const DTensor>(in.begin(), in.size()))[0]);
}

template <Operation Op>
DTensor run_op(const Op& op, const std::vector<DTensor>& in) {
  return std::move(dispatch(op_info<Op>(), &op, attribute_hash(op), in)[0]);
}

}  // namespace tessera::detail
