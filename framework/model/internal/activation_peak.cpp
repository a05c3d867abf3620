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
struct Enough {};

/// Counts the bytes of the values of a call that are alive at the same time.
class LiveValues final : public OpListener {
 public:
  explicit LiveValues(double enough) : enough_(enough) {}

  void ran(const OpInfo&, const std::shared_ptr<const void>&, const std::shared_ptr<OpPlan>&,
           std::span<const DTensor>, std::span<const DTensor> out) override {
    drop();
    for (const DTensor& made : out) add(made);
  }
  void constant(const DTensor& made) override { add(made); }
  void masked(const DTensor& made) override { add(made); }

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

  void add(const DTensor& made) {
    live_.push_back(made);
    bytes_ += bytes_of(made);
    if (bytes_ <= peak_.bytes) return;
    const std::string* const layer = thread_state().comm_label;
    peak_ = {bytes_, layer ? *layer : "", made.shape()};
    if (bytes_ > enough_) throw Enough();
  }

  double enough_;
  double bytes_ = 0;
  std::vector<DTensor> live_;
  ActivationPeak peak_;
};

}  // namespace

ActivationPeak activation_peak(Model& model, const Shape& input, at::ScalarType dtype,
                               const Layout& layout, double enough) {
  const NoRecording no_recording;
  LiveValues live(enough);
  try {
    const AbstractScope plans_only(layout.mesh());
    const TracerScope tracer_scope(&live);
    const DTensor x(intern(input, dtype, layout), {});
    model.outputs({x}, CallContext());
  } catch (const Enough&) {
  } catch (const StateError&) {
    // A layer reads numbers, which abstract values do not have.
  }
  model.clear_losses();
  return live.peak();
}

}  // namespace tessera::detail
