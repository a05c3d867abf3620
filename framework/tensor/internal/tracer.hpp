#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

struct OpInfo;
class OpPlan;

/// Something done with values for what it changes elsewhere: a Variable, a metric.
using TracedAction = std::function<void(std::span<const DTensor>)>;

/// Hears everything that a thread computes, so that it can be done again without the code that
/// asked for it.
class Tracer {
 public:
  virtual ~Tracer() = default;
  /// A value made of nothing that changes: the same in every step.
  virtual void constant(const DTensor& made) = 0;
  /// A small host value that is another one in each step; made for this one.
  virtual void input(const DTensor& made, int64_t step,
                     std::function<at::Tensor(int64_t step)> host) = 0;
  /// An operation; `plan` is null for one that moves blocks itself.
  virtual void ran(const OpInfo& info, const std::shared_ptr<const void>& op,
                   const std::shared_ptr<OpPlan>& plan, std::span<const DTensor> in,
                   std::span<const DTensor> out) = 0;
  virtual void action(std::span<const DTensor> in, const TracedAction& run) = 0;
  /// Code that is not Tessera's takes part; what it does beside operations is not heard.
  virtual void user_code(const std::string& what) = 0;
  /// Something that cannot be done again without that code, such as reading a number.
  virtual void stop(const std::string& why) = 0;
};

/// The one that hears this thread, null for none.
Tracer* tracer();

/// Makes a tracer this thread's while alive; null: nobody hears it.
class TracerScope {
 public:
  explicit TracerScope(Tracer* tracer);
  ~TracerScope();
  /// What it was before.
  Tracer* former() const { return former_; }
  TracerScope(const TracerScope&) = delete;
  TracerScope& operator=(const TracerScope&) = delete;

 private:
  Tracer* former_;
};

/// Runs the action, telling the tracer about it and not about what it does inside.
void traced(std::span<const DTensor> in, const TracedAction& run);
/// Tells the tracer that this cannot be done again.
void stop_tracing(const char* why);

}  // namespace tessera::detail
