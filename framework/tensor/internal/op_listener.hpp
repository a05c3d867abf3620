#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

struct OpInfo;
class OpPlan;

/// Something done with values for what it changes elsewhere: a Variable, a metric.
using TracedAction = std::function<void(std::span<const DTensor>)>;

/// Hears the operations of a thread as they run. A tape does, to differentiate through them, and
/// nothing else; a tracer hears the rest, too, so that all can be done again without the code that
/// asked for it.
class OpListener {
 public:
  virtual ~OpListener() = default;
  /// An operation; `plan` is null for one that moves blocks itself.
  virtual void ran(const OpInfo& info, const std::shared_ptr<const void>& op,
                   const std::shared_ptr<OpPlan>& plan, std::span<const DTensor> in,
                   std::span<const DTensor> out) = 0;
  /// A value made of nothing that changes: the same in every step.
  virtual void constant(const DTensor& /*made*/) {}
  /// A value that is another one with another mask.
  virtual void masked(const DTensor& /*made*/) {}
  /// A small host value that is another one in each step; made for this one.
  virtual void input(const DTensor& /*made*/, int64_t /*step*/,
                     std::function<at::Tensor(int64_t step)> /*host*/) {}
  /// Something that was done for what it changes elsewhere.
  virtual void action(std::span<const DTensor> /*in*/, const TracedAction& /*run*/) {}
  /// Code that is not Tessera's takes part; what it does beside operations is not heard.
  virtual void user_code(const std::string& /*what*/) {}
  /// Something that cannot be done again without that code, such as reading a number.
  virtual void stop(const std::string& /*why*/) {}
};

}  // namespace tessera::detail
