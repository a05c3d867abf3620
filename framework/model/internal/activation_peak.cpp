#include <tessera/framework/model/internal/activation_peak.hpp>

#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera::detail {
namespace {

double bytes_of(const DTensor& value) {
  double bytes = static_cast<double>(c10::elementSize(value.dtype()));
  for (const int64_t extent : value.shape()) bytes *= static_cast<double>(extent);
  return bytes;
}

/// Thrown to end the call.
struct LimitExceeded {};

/// Counts the bytes of the values of a call that are alive at the same time.
class LiveValues final : public OpListener {
 public:
  explicit LiveValues(double limit) : limit_(limit) {}

  void ran(const OpInfo&, const std::shared_ptr<const void>&, const std::shared_ptr<OpPlan>&,
           std::span<const DTensor>, std::span<const DTensor> out) override {
    drop();
    for (const DTensor& value : out) add(value);
  }
  void constant(const DTensor& value) override { add(value); }
  void masked(const DTensor& value) override { add(value); }

  const ActivationPeak& peak() const { return peak_; }

 private:
  /// Drops values that nobody else holds any more.
  void drop() {
    std::erase_if(live_, [this](const DTensor& value) {
      const bool dead = value.owns_memory();
      if (dead) bytes_ -= bytes_of(value);
      return dead;
    });
  }

  void add(const DTensor& value) {
    live_.push_back(value);
    bytes_ += bytes_of(value);
    if (bytes_ <= peak_.bytes) return;
    const std::string* const layer = thread_state().comm_label;
    peak_ = {bytes_, layer ? *layer : "", value.shape()};
    if (bytes_ > limit_) throw LimitExceeded();
  }

  double limit_;
  double bytes_ = 0;
  std::vector<DTensor> live_;
  ActivationPeak peak_;
};

}  // namespace

ActivationPeak activation_peak(Model& model, std::span<const PeakInput> inputs, double limit) {
  const NoRecording no_recording;
  LiveValues live(limit);
  try {
    const AbstractScope plans_only(inputs.front().layout.mesh());
    const TracerScope tracer_scope(&live);
    std::vector<DTensor> x;
    for (const PeakInput& input : inputs) {
      x.emplace_back(intern(input.shape, input.dtype, input.layout), Blocks{});
    }
    model.outputs(x, CallContext());
  } catch (const LimitExceeded&) {
  } catch (const StateError&) {
    // A layer reads numbers, which abstract values do not have.
  }
  model.clear_losses();
  return live.peak();
}

ActivationPeak activation_peak(Model& model, const Shape& input, at::ScalarType dtype,
                               const Layout& layout, double limit) {
  const PeakInput one{input, dtype, layout};
  return activation_peak(model, std::span(&one, 1), limit);
}

}  // namespace tessera::detail
