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

  /// How many rows the next batch has of which the logger is told.
  void set_rows(int64_t rows) { rows_ = rows; }
  /// The steps are done that the bar shows: what other callbacks and a validation take from here on
  /// is not their time.
  void end_steps() { bar_.end_steps(); }

  void on_train_begin() override { in_fit_ = true; }
  void on_epoch_begin(int64_t epoch) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_batch_begin(int64_t batch) override;
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
  bool begins_ = false;         ///< whether the epoch has had no batch
  int64_t rows_ = 0;
  bool fresh_ = false;  ///< whether the next logs are to be shown
  double last_reading_ = -1;
};

}  // namespace tessera::detail
