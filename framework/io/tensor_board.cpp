#include <tessera/framework/io/tensor_board.hpp>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/internal/event_file.hpp>
#include <tessera/framework/model/model.hpp>
#include <tessera/framework/training/callbacks/internal/learning_rate_access.hpp>
#include <tessera/framework/training/callbacks/occasional_weight_reader.hpp>

namespace tessera {

using namespace detail;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// An event file that is created at the first write; written on the first process only.
class LazyWriter {
 public:
  explicit LazyWriter(std::string folder) : folder_(std::move(folder)) {}
  EventFileWriter& get() {
    if (!writer_) writer_ = std::make_unique<EventFileWriter>(folder_);
    return *writer_;
  }
  /// Flushes written records to the system. Throws FileError.
  void flush() {
    if (writer_) writer_->flush();
  }
  /// Closes the file. Returns the number of records that are not in it.
  int64_t close() {
    const int64_t lost = writer_ ? writer_->unwritten() : 0;
    writer_.reset();
    return lost;
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  std::unique_ptr<EventFileWriter> writer_;
};

class Writer final : public Callback, public OccasionalWeightReader {
 public:
  explicit Writer(const TensorBoardOptions& options)
      : options_(options),
        train_(options.log_dir + "/train"),
        validation_(options.log_dir + "/validation") {
    if (options.histogram_freq >= 0) return;
    throw ConfigError("TensorBoard", "histogram_freq is not negative", str(options.histogram_freq),
                      "pass the number of epochs between histograms");
  }

  void on_train_begin() override { train_batch_ = 0; }
  void on_train_end(const Logs&) override {
    for (LazyWriter* writer : {&train_, &validation_}) {
      flush(*writer);
      const int64_t lost = writer->close();
      if (lost == 0) continue;
      warn(str("TensorBoard could not write its last values in ", writer->folder(), ": ", lost,
               lost == 1 ? " record is" : " records are", " lost"));
    }
  }

  void on_epoch_begin(int64_t) override {
    epoch_begin_ = now();
    epoch_iterations_ = model().optimizer() ? model().optimizer()->iterations() : 0;
  }

  void on_train_batch_begin(int64_t) override {
    ++train_batch_;
    batch_begin_ = now();
  }

  void on_train_batch_end(int64_t, const Logs& logs) override {
    if (!params().is_first_rank || !options_.update_freq.due(train_batch_)) return;
    for (const auto& [name, value] : logs) {
      train_.get().scalar("batch_" + name, value, train_batch_);
    }
    if (options_.write_steps_per_second) {
      train_.get().scalar("batch_steps_per_second", 1 / (now() - batch_begin_), train_batch_);
    }
  }

  bool wants_batch_logs(int64_t) override { return options_.update_freq.due(train_batch_); }
  std::optional<int64_t> batches_to_weights() override { return std::nullopt; }

  void on_test_end(const Logs& logs) override {
    if (!params().is_first_rank || !model().optimizer()) return;
    const int64_t step = model().optimizer()->iterations();
    for (const auto& [name, value] : logs) {
      validation_.get().scalar("evaluation_" + name + "_vs_iterations", value, step);
    }
    flush(validation_);
  }

  void on_epoch_end(int64_t epoch, Logs& logs) override {
    const int64_t every = options_.histogram_freq;
    // All-gathered before anything is written, since writing may fail on this process alone.
    std::vector<at::Tensor> weights;
    if (every > 0 && epoch % every == 0) weights = full_weights();
    if (!params().is_first_rank) return;
    write_values(epoch, logs);
    write_histograms(epoch, weights);
    flush(train_);
  }

 private:
  /// Flushes; warns on failure, since logging must not end a run.
  void flush(LazyWriter& writer) {
    try {
      writer.flush();
    } catch (const FileError& error) {
      warn_once(warned_of_file_,
                str("TensorBoard could not write its values and will retry: ", error.what()));
    }
  }

  void warn_once(bool& warned, const std::string& line) const {
    if (!std::exchange(warned, true)) warn(line);
  }

  void write_values(int64_t epoch, const Logs& logs) {
    for (const auto& [name, value] : logs) {
      if (name.starts_with("val_")) {
        validation_.get().scalar("epoch_" + name.substr(4), value, epoch);
      } else if (name != "learning_rate") {
        train_.get().scalar("epoch_" + name, value, epoch);
      }
    }
    // A train_step() may have optimizers of its own.
    const OptimizerHandle& optimizer = model().optimizer();
    if (!optimizer) return;
    train_.get().scalar("epoch_learning_rate", optimizer->learning_rate(), epoch);
    if (!options_.write_steps_per_second) return;
    const auto steps = static_cast<double>(optimizer->iterations() - epoch_iterations_);
    train_.get().scalar("epoch_steps_per_second", steps / (now() - epoch_begin_), epoch);
  }

  /// Returns the unsharded weights; empty but on the first process, though all processes
  /// all-gather.
  std::vector<at::Tensor> full_weights() const {
    std::vector<at::Tensor> tensors;
    for (const Variable& weight : model().weights()) {
      const at::Tensor values = weight.value().full();
      if (params().is_first_rank) tensors.push_back(values);
    }
    return tensors;
  }

  void write_histograms(int64_t epoch, const std::vector<at::Tensor>& weights) {
    const std::vector<Variable> variables = model().weights();
    for (size_t i = 0; i < weights.size(); ++i) {
      const at::Tensor values = weights[i].to(at::kDouble).contiguous();
      const double* first = values.const_data_ptr<double>();
      std::vector<double> numbers(first, first + values.numel());
      const size_t left_out = std::erase_if(
          numbers, [](double value) { return !EventFileWriter::is_histogram_value(value); });
      if (left_out > 0) {
        warn_once(warned_of_values_,
                  str("TensorBoard's histograms leave out values that are not "
                      "finite numbers below 1e300, for example ",
                      left_out, " of ", variables[i].path(), " in epoch ", epoch + 1));
      }
      train_.get().histogram(variables[i].path() + "/histogram", numbers, epoch);
    }
  }

  TensorBoardOptions options_;
  LazyWriter train_;
  LazyWriter validation_;
  int64_t train_batch_ = 0;
  double batch_begin_ = 0;
  double epoch_begin_ = 0;
  bool warned_of_file_ = false;
  bool warned_of_values_ = false;
  int64_t epoch_iterations_ = 0;
};

}  // namespace

UpdateFreq::UpdateFreq(const char* freq) : batches_(std::string(freq) == "batch" ? 1 : 0) {
  if (batches_ == 1 || std::string(freq) == "epoch") return;
  throw ConfigError("TensorBoard", "update_freq is \"epoch\", \"batch\" or a number",
                    in_quotes(freq), "pass one of them");
}

UpdateFreq::UpdateFreq(int batches) : batches_(batches) {
  if (batches > 0) return;
  throw ConfigError("TensorBoard", "update_freq is at least 1", str(batches),
                    "pass the number of batches between values");
}

TensorBoard::TensorBoard(const TensorBoardOptions& options)
    : CallbackHandle(std::make_shared<Writer>(options)) {}

}  // namespace tessera
