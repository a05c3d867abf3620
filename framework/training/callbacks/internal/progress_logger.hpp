#pragma once

#include <memory>

#include <tessera/framework/training/callbacks/callback.hpp>
#include <tessera/framework/training/callbacks/progress_bar.hpp>

namespace tessera::detail {

/// Draws the progress bar of a run, on the first process only (keras.callbacks.ProgbarLogger).
class ProgressLogger final : public Callback {
 public:
  /// `reads_metrics`: whether the bar may read metrics when it is redrawn, at most every 50 ms;
  /// must be false on a mesh of several processes, where reading is collective.
  ProgressLogger(const Callback::Params& params, bool reads_metrics);

  /// Sets the number of rows in the next batch that is reported.
  void set_rows(int64_t rows) { rows_ = rows; }
  /// Marks the end of the steps that the bar shows, so that the time of other callbacks and of a
  /// validation does not count.
  void end_steps() { bar_->end_steps(); }

  void on_train_begin() override { in_fit_ = true; }
  /// Draws in another process, if the first one is gone.
  void on_membership_change(const MembershipChange& change) override;
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
  std::unique_ptr<ProgressBar> bar_;
  bool reads_metrics_;
  bool in_fit_ = false;
  bool shows_batches_ = false;  ///< false in a validation
  bool begins_ = false;         ///< whether the epoch has had no batch yet
  int64_t rows_ = 0;
  bool fresh_ = false;  ///< whether the next logs are to be shown
  double last_reading_ = -1;
};

}  // namespace tessera::detail
