#pragma once

#include <span>
#include <vector>

#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::detail {

/// Sees every operation as it runs; the tape is one.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void record(const OpInfo& info, const std::shared_ptr<const void>& op,
                      std::span<const DTensor> in, std::span<const DTensor> out) = 0;
};

/// Adds or removes a recorder of this thread; the last added is called first.
void push_recorder(Recorder* recorder);
void remove_recorder(Recorder* recorder);
/// While alive, operations of this thread are not recorded.
class NoRecording {
 public:
  NoRecording();
  ~NoRecording();
  NoRecording(const NoRecording&) = delete;
  NoRecording& operator=(const NoRecording&) = delete;

 private:
  std::vector<Recorder*> former_;
};

/// Runs an operation: propagates layouts, brings inputs to them, runs forward on every local block.
/// Plans are cached by operation, attributes, shardings and policy, per thread.
std::vector<DTensor> dispatch(const OpInfo& info, const void* op, size_t attributes,
                              std::span<const DTensor> in);

/// Whether something records this thread's operations.
bool recording();

/// The layouts that dispatch would choose, without running anything.
Propagation plan_op(const OpInfo& info, const void* op, const std::vector<ShardingPtr>& in,
                    uint32_t parameters = 0);

/// Plans made and plans found again, in this thread.
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
