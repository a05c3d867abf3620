#pragma once

#include <tessera/framework/training/callbacks/callback.hpp>
#include <tessera/framework/training/callbacks/progress_bar.hpp>

namespace tessera::detail {

/// Draws the progress bar of a run; silent but on the first process
/// (keras.callbacks.ProgbarLogger).
class ProgressLogger final : public Callback {
 public:
  /// `reads_metrics`: whether the bar may read metrics when it is redrawn, at most every 50 ms,
  /// which it must not where other processes take part.
  ProgressLogger(const Callback::Params& params, bool reads_metrics);

  void on_train_begin() override { in_fit_ = true; }
  void on_epoch_begin(int64_t epoch) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_test_begin() override;
  void on_test_end(const Logs& logs) override;
  void on_test_batch_end(int64_t batch, const Logs& logs) override;
  void on_predict_begin() override;
  void on_predict_end() override;
  void on_predict_batch_end(int64_t batch) override;
  bool wants_batch_logs(int64_t batch) override;

 private:
  ProgressBar bar_;
  bool reads_metrics_;
  bool in_fit_ = false;
  bool shows_batches_ = false;  ///< not those of validation
  bool fresh_ = false;          ///< whether the next logs are to be shown
  double last_reading_ = -1;
};

}  // namespace tessera::detail
