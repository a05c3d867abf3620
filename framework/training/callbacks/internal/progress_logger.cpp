#include <tessera/framework/training/callbacks/internal/progress_logger.hpp>

#include <chrono>

namespace tessera::detail {
namespace {

constexpr double reading_interval = 0.05;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Returns the verbosity of this process. Throws on every process if `params.verbose` is invalid.
int shown(const Callback::Params& params) {
  const ProgressBar checked({.verbose = params.verbose});
  return params.is_first_rank ? params.verbose : 0;
}

}  // namespace

ProgressLogger::ProgressLogger(const Callback::Params& params, bool reads_metrics)
    : bar_(std::make_unique<ProgressBar>(ProgressBarOptions{.verbose = shown(params)})),
      reads_metrics_(reads_metrics && params.verbose == 1) {}

void ProgressLogger::on_membership_change(const MembershipChange&) {
  bar_ = std::make_unique<ProgressBar>(ProgressBarOptions{.verbose = shown(params())});
}

void ProgressLogger::on_epoch_begin(int64_t epoch) {
  shows_batches_ = begins_ = true;
  bar_->start_epoch(epoch, params().epochs, params().steps);
}

void ProgressLogger::on_epoch_end(int64_t, Logs& logs) { bar_->finish(logs); }

void ProgressLogger::on_train_batch_begin(int64_t batch) {
  // A resumed run may begin inside an epoch.
  if (begins_) bar_->start_at(batch);
  begins_ = false;
}

void ProgressLogger::on_train_batch_end(int64_t batch, const Logs& logs) {
  bar_->update(batch + 1, fresh_ ? logs : Logs(), rows_);
}

void ProgressLogger::on_test_begin() {
  shows_batches_ = !in_fit_;
  if (!in_fit_) bar_->start(params().steps);
}

void ProgressLogger::on_test_end(const Logs& logs) {
  if (!in_fit_) bar_->finish(logs);
}

void ProgressLogger::on_test_batch_end(int64_t batch, const Logs& logs) {
  if (shows_batches_) on_train_batch_end(batch, logs);
}

void ProgressLogger::on_predict_begin() { bar_->start(params().steps); }
void ProgressLogger::on_predict_end() { bar_->finish(); }
void ProgressLogger::on_predict_batch_end(int64_t batch) { bar_->update(batch + 1, {}, rows_); }

bool ProgressLogger::wants_batch_logs(int64_t) {
  const double time = now();
  const bool due = last_reading_ < 0 || time - last_reading_ >= reading_interval;
  fresh_ = reads_metrics_ && shows_batches_ && due;
  if (fresh_) last_reading_ = time;
  return fresh_;
}

}  // namespace tessera::detail
