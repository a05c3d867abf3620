#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

struct OpInfo;
class OpPlan;

/// A side effect of values on something else: a Variable, a metric.
using SideEffect = std::function<void(std::span<const DTensor>)>;
/// Whether a side effect changes Variables, only the sums of metrics and losses, which no operation
/// reads, or only the memory of values that it gets, if anything.
enum class Changes : uint8_t { variables, sums, inputs };

/// Is notified of a thread's operations as they run. A tape overrides ran() only, to differentiate
/// through operations; a tracer records the rest too, so that all can be replayed without the
/// calling code.
class OpListener {
 public:
  virtual ~OpListener() = default;
  /// Called after an operation ran; `plan` is null for one that moves blocks itself.
  virtual void ran(const OpInfo& info, const std::shared_ptr<const void>& op,
                   const std::shared_ptr<OpPlan>& plan, std::span<const DTensor> in,
                   std::span<const DTensor> out) = 0;
  /// Called for a new constant, which is the same in every step.
  virtual void constant(const DTensor& /*made*/) {}
  /// Called for a value that with_mask() made of another one.
  virtual void masked(const DTensor& /*made*/) {}
  /// Called for a small host value made for this step; `host` computes it for any step.
  virtual void input(const DTensor& /*made*/, int64_t /*step*/,
                     std::function<at::Tensor(int64_t step)> /*host*/) {}
  /// Called for a side effect.
  virtual void action(std::span<const DTensor> /*in*/, const SideEffect& /*run*/,
                      Changes /*changes*/) {}
  /// Called where user code takes part; only its operations are recorded.
  virtual void user_code(const std::string& /*what*/) {}
  /// Called for something that cannot be replayed without the calling code, such as reading a
  /// number on the host.
  virtual void stop(const std::string& /*why*/) {}
  /// Whether numbers() is called after constant().
  virtual bool keeps_numbers() const { return false; }
  /// Called with the numbers of a new constant, all of its tensor, on the host.
  virtual void numbers(const DTensor& /*made*/, const at::Tensor& /*numbers*/) {}
  /// Called when a backward pass goes on to the gradient of another value, by its id; with 0 when
  /// it ends.
  virtual void gradient_of(uint64_t /*value*/) {}
};

}  // namespace tessera::detail
