#include <tessera/framework/training/callbacks/swap_ema_weights.hpp>

#include <memory>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/optimizer/internal/moving_averages.hpp>
#include <tessera/framework/training/trainer.hpp>

namespace tessera {

using namespace detail;

namespace {

class Swapper final : public Callback {
 public:
  explicit Swapper(const SwapEMAWeightsOptions& options) : options_(options) {}

  void on_epoch_begin(int64_t) override {
    if (options_.swap_on_epoch) swap_unless(false);
  }
  void on_epoch_end(int64_t, Logs&) override {
    if (options_.swap_on_epoch) swap_unless(true);
  }
  void on_test_begin() override { swap_unless(true); }
  void on_test_end(const Logs&) override { swap_unless(false); }
  void on_predict_begin() override { swap_unless(true); }
  void on_predict_end() override { swap_unless(false); }

  std::string class_name() const override { return "SwapEMAWeights"; }

 private:
  void swap_unless(bool swapped) {
    const OptimizerHandle optimizer = trainer().optimizer();
    if (!optimizer || !MovingAverages::enabled(*optimizer)) {
      throw StateError("SwapEMAWeights", "the optimizer has use_ema",
                       optimizer ? optimizer->class_name() : "none",
                       "compile with one that has, such as SGD(0.1, {.use_ema = true})");
    }
    if (MovingAverages::swapped(*optimizer) != swapped) MovingAverages::swap(*optimizer);
  }

  SwapEMAWeightsOptions options_;
};

}  // namespace

SwapEMAWeights::SwapEMAWeights(const SwapEMAWeightsOptions& options)
    : CallbackHandle(std::make_shared<Swapper>(options)) {}

}  // namespace tessera
