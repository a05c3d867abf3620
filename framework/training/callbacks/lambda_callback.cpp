#include <tessera/framework/training/callbacks/lambda_callback.hpp>

#include <memory>

#include <tessera/framework/training/callbacks/occasional_weight_reader.hpp>

namespace tessera {

using namespace detail;

namespace {

class Functions final : public Callback, public OccasionalWeightReader {
 public:
  explicit Functions(const LambdaCallbackOptions& options) : on_(options) {}

  void on_train_begin() override {
    // A failed evaluation did not call on_test_end().
    testing_ = false;
    call(on_.on_train_begin);
  }
  void on_train_end(const Logs& logs) override { call(on_.on_train_end, logs); }
  void on_epoch_begin(int64_t epoch) override { call(on_.on_epoch_begin, epoch); }
  void on_epoch_end(int64_t epoch, Logs& logs) override { call(on_.on_epoch_end, epoch, logs); }
  void on_train_batch_begin(int64_t batch) override { call(on_.on_train_batch_begin, batch); }
  void on_train_batch_end(int64_t batch, const Logs& logs) override {
    call(on_.on_train_batch_end, batch, logs);
  }
  void on_test_begin() override {
    testing_ = true;
    call(on_.on_test_begin);
  }
  void on_test_end(const Logs& logs) override {
    testing_ = false;
    call(on_.on_test_end, logs);
  }
  void on_test_batch_begin(int64_t batch) override { call(on_.on_test_batch_begin, batch); }
  void on_test_batch_end(int64_t batch, const Logs& logs) override {
    call(on_.on_test_batch_end, batch, logs);
  }
  void on_predict_begin() override { call(on_.on_predict_begin); }
  void on_predict_end() override { call(on_.on_predict_end); }
  void on_predict_batch_begin(int64_t batch) override { call(on_.on_predict_batch_begin, batch); }
  void on_predict_batch_end(int64_t batch) override { call(on_.on_predict_batch_end, batch); }

  std::optional<int64_t> batches_to_weights() override {
    return on_.on_train_batch_end ? std::optional<int64_t>(1) : std::nullopt;
  }
  bool wants_batch_logs(int64_t) override {
    return static_cast<bool>(testing_ ? on_.on_test_batch_end : on_.on_train_batch_end);
  }

 private:
  template <class Function, class... Args>
  static void call(const Function& function, Args&&... args) {
    if (function) function(std::forward<Args>(args)...);
  }

  LambdaCallbackOptions on_;
  bool testing_ = false;
};

}  // namespace

LambdaCallback::LambdaCallback(const LambdaCallbackOptions& options)
    : CallbackHandle(std::make_shared<Functions>(options)) {}

}  // namespace tessera
