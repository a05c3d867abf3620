#include <tessera/framework/io/model_checkpoint.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/io/checkpoint.hpp>
#include <tessera/framework/io/format/checkpoint_folder.hpp>
#include <tessera/framework/io/internal/file_template.hpp>
#include <tessera/framework/io/weights_file.hpp>
#include <tessera/framework/model/model.hpp>
#include <tessera/framework/training/callbacks/internal/monitor.hpp>
#include <tessera/framework/training/callbacks/occasional_weight_reader.hpp>

namespace tessera {

using namespace detail;

namespace {

/// The files that ModelCheckpoint writes.
enum class Saved : uint8_t { checkpoint, model, weights };

/// Returns what a file or folder of this name holds.
Saved saved_as(const std::string& filepath) {
  if (filepath.ends_with(".keras")) return Saved::model;
  return has_weights_extension(filepath) ? Saved::weights : Saved::checkpoint;
}

void check(const std::string& filepath, bool weights_only) {
  const std::string name = std::filesystem::path(filepath).filename().string();
  if (name.empty() || name == "." || name == "..") {
    throw ConfigError("ModelCheckpoint", "filepath names a file or folder", in_quotes(filepath),
                      "pass a name, such as \"best.keras\"");
  }
  const Saved saved = saved_as(filepath);
  if (weights_only && saved != Saved::weights) {
    throw ConfigError(
        "ModelCheckpoint",
        "filepath ends in \".weights.h5\", \".weights.json\" or \".safetensors\" with "
        "save_weights_only",
        in_quotes(filepath), "add one of these extensions");
  }
  const bool earlier_model = name.ends_with(".h5") || name.ends_with(".hdf5");
  if (saved == Saved::checkpoint && earlier_model) {
    throw ConfigError("ModelCheckpoint",
                      "filepath ends in \".keras\" for a model and in \".weights.h5\" for weights",
                      in_quotes(filepath), "change the extension");
  }
}

std::string five_decimals(double value) {
  std::string text(static_cast<size_t>(std::snprintf(nullptr, 0, "%.5f", value)), '\0');
  std::snprintf(text.data(), text.size() + 1, "%.5f", value);
  return text;
}

class Saver final : public Callback, public OccasionalWeightReader {
 public:
  Saver(const std::string& filepath, const ModelCheckpointOptions& options)
      : filepath_(filepath),
        options_(options),
        monitor_("ModelCheckpoint", {options.monitor, options.mode}),
        best_(options.initial_value_threshold),
        saved_(saved_as(filepath)) {
    check(filepath, options.save_weights_only);
  }

  void on_epoch_begin(int64_t epoch) override { epoch_ = epoch; }

  void on_train_batch_end(int64_t batch, const Logs& logs) override {
    if (options_.save_freq.by_epoch() || ++batches_ < options_.save_freq.batches()) return;
    batches_ = 0;
    visit(epoch_, batch + 1, logs);
  }

  void on_epoch_end(int64_t epoch, Logs& logs) override {
    if (options_.save_freq.by_epoch()) visit(epoch, std::nullopt, logs);
  }

  bool wants_batch_logs(int64_t) override {
    return !options_.save_freq.by_epoch() && batches_ + 1 >= options_.save_freq.batches();
  }

  std::optional<int64_t> batches_to_weights() override {
    return batches_to_save(options_.save_freq, batches_);
  }

  std::string class_name() const override { return "ModelCheckpoint"; }

  Json state() const override {
    return {{"best", best_ ? Json(*best_) : Json(nullptr)}, {"batches", batches_}};
  }

  void restore(const Json& state, const NamedTensors&) override {
    JsonObject object(state, JsonPath("ModelCheckpoint"));
    best_ = object.take_optional<double>("best");
    batches_ = object.take<int64_t>("batches");
  }

  std::optional<double> best() const { return best_; }

 private:
  void visit(int64_t epoch, std::optional<int64_t> batch, const Logs& logs) {
    const std::string path = fill_template("ModelCheckpoint", filepath_, epoch + 1, batch, logs);
    const std::optional<double> previous_best = best_;
    if (!is_due(epoch, logs, path)) return;
    try {
      save(path);
    } catch (const FileError& error) {
      best_ = previous_best;
      if (options_.save_failure == SaveFailure::raise) throw;
      warn(str("the model was not saved: ", error.what()));
      return;
    }
    say(epoch, str("finished saving model to ", path));
  }

  bool is_due(int64_t epoch, const Logs& logs, const std::string& path) {
    const std::string& name = monitor_.name();
    if (!options_.save_best_only) {
      say(epoch, str("saving model to ", path));
      return true;
    }
    const std::optional<double> value = find_value(logs, name);
    if (!value) {
      warn(str("Can save best model only with ", name, " available."));
      return true;
    }
    const std::string previous_best = best_ ? five_decimals(*best_) : "None";
    if (!monitor_.improved(*value, best_, model())) {
      say(epoch, str(name, " did not improve from ", previous_best));
      return false;
    }
    say(epoch, str(name, " improved from ", previous_best, " to ", five_decimals(*value),
                   ", saving model to ", path));
    best_ = value;
    return true;
  }

  void save(const std::string& path) {
    Checkpoint checkpoint(model());
    collectively(checkpoint.mesh(), path, [&] {
      if (params().is_first_rank) prepare(parent_of(path));
    });
    if (saved_ == Saved::checkpoint) return checkpoint.save(path);
    if (saved_ == Saved::model) return model().save(path);
    model().save_weights(path, {.max_shard_size = default_shard_size(path)});
  }

  void prepare(const std::string& folder) const {
    if (folder.empty()) return;
    if (!make_folders(folder)) {
      throw FileError(folder, "the folder must be writable", std::strerror(errno),
                      "choose another folder");
    }
    if (saved_ == Saved::checkpoint) remove_leftovers(folder);
  }

  void say(int64_t epoch, const std::string& text) const {
    if (options_.verbose > 0) print(str("\nEpoch ", epoch + 1, ": ", text));
  }

  std::string filepath_;
  ModelCheckpointOptions options_;
  Monitor monitor_;
  std::optional<double> best_;
  Saved saved_;
  int64_t epoch_ = 0;
  int64_t batches_ = 0;
};

}  // namespace

ModelCheckpoint::ModelCheckpoint(const std::string& filepath, const ModelCheckpointOptions& options)
    : CallbackHandle(std::make_shared<Saver>(filepath, options)) {}

std::optional<double> ModelCheckpoint::best() const {
  return static_cast<const Saver&>(**this).best();
}

}  // namespace tessera
