#include <tessera/framework/io/backup_and_restore.hpp>

#include <memory>
#include <optional>

#include <tessera/framework/io/checkpoint_manager.hpp>
#include <tessera/framework/training/callbacks/occasional_weight_reader.hpp>

namespace tessera {

using namespace detail;

namespace {

class Backup final : public Callback, public OccasionalWeightReader {
 public:
  Backup(const std::string& backup_dir, const BackupAndRestoreOptions& options)
      : backup_dir_(backup_dir), options_(options) {
    if (!backup_dir.empty()) return;
    throw ConfigError("BackupAndRestore", "backup_dir names a directory", "\"\"",
                      "pass a directory that only this callback uses");
  }

  bool is_called_last() const override { return true; }
  std::string class_name() const override { return "BackupAndRestore"; }

  void on_train_begin() override { open(); }
  /// A save that the change interrupted is given up, with a warning.
  void on_membership_change(const MembershipChange&) override { open(); }

  void on_train_batch_end(int64_t, const Logs&) override {
    if (options_.save_freq.by_epoch() || ++batches_ < options_.save_freq.batches()) return;
    batches_ = 0;
    save();
  }

  bool wants_batch_logs(int64_t) override { return false; }
  std::optional<int64_t> batches_to_weights() override {
    return batches_to_save(options_.save_freq, batches_);
  }

  void on_test_begin() override {
    // Keeps the epoch's metric totals before validation replaces them.
    const bool in_epoch = checkpoint_ && model().fit_position().step > 0;
    if (in_epoch) checkpoint_->set_metric_totals(model().metric_totals(), model().metric_sums());
  }

  void on_epoch_end(int64_t, Logs&) override {
    if (options_.save_freq.by_epoch()) save();
    checkpoint_->set_metric_totals(nullptr);
  }

  void on_interrupt() override {
    save();
    manager_->wait();
  }

  void on_train_end(const Logs&) override {
    if (options_.delete_checkpoint) {
      manager_->remove_all();
    } else {
      manager_->wait();
    }
    manager_.reset();
    checkpoint_.reset();
  }

 private:
  void open() {
    manager_.reset();
    checkpoint_.emplace(model());
    checkpoint_->set_callbacks(params().callbacks);
    manager_.emplace(*checkpoint_, backup_dir_,
                     CheckpointManagerOptions{.max_to_keep = options_.double_checkpoint ? 2 : 1,
                                              .asynchronous = options_.asynchronous,
                                              .save_failure = options_.save_failure});
    manager_->claim();
    batches_ = 0;
    if (!params().restored_from_memory) manager_->restore_latest();
  }

  void save() {
    // Without an optimizer, saves are counted instead of steps.
    const OptimizerHandle& optimizer = model().optimizer();
    saves_ = optimizer ? optimizer->steps() : saves_ + 1;
    manager_->save(saves_);
  }

  std::string backup_dir_;
  BackupAndRestoreOptions options_;
  std::optional<Checkpoint> checkpoint_;
  std::optional<CheckpointManager> manager_;
  int64_t batches_ = 0;
  int64_t saves_ = 0;
};

}  // namespace

BackupAndRestore::BackupAndRestore(const std::string& backup_dir,
                                   const BackupAndRestoreOptions& options)
    : CallbackHandle(std::make_shared<Backup>(backup_dir, options)) {}

}  // namespace tessera
