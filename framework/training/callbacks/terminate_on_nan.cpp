#include <tessera/framework/training/callbacks/terminate_on_nan.hpp>

#include <cmath>
#include <memory>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/training/callbacks/occasional_weight_reader.hpp>
#include <tessera/framework/training/trainer.hpp>

namespace tessera {

using namespace detail;

namespace {

class Terminator final : public Callback, public OccasionalWeightReader {
 public:
  explicit Terminator(const TerminateOnNaNOptions& options) : options_(options) {}

  void on_train_batch_end(int64_t batch, const Logs& logs) override {
    const std::optional<double> loss = find_value(logs, "loss");
    if (!loss || std::isfinite(*loss)) return;
    if (options_.raise_error) {
      throw StateError("TerminateOnNaN", "the loss stays finite", str(*loss, " at batch ", batch),
                       "lower the learning rate, or look for bad values in the data");
    }
    print(str("Batch ", batch, ": Invalid loss, terminating training"));
    trainer().set_stop_training(true);
  }

  bool wants_batch_logs(int64_t) override { return false; }
  std::optional<int64_t> batches_to_weights() override { return std::nullopt; }
  bool accepts_non_finite_loss() const override { return true; }

 private:
  TerminateOnNaNOptions options_;
};

}  // namespace

TerminateOnNaN::TerminateOnNaN(const TerminateOnNaNOptions& options)
    : CallbackHandle(std::make_shared<Terminator>(options)) {}

}  // namespace tessera
