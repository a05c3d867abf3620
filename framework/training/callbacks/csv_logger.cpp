#include <tessera/framework/training/callbacks/csv_logger.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/record_file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/training/callbacks/internal/python_repr.hpp>

namespace tessera {

using namespace detail;

namespace {

bool has_a_line(const std::string& filename) {
  std::ifstream file(filename, std::ios::binary);
  return file && file.peek() != std::ifstream::traits_type::eof();
}

class Logger final : public Callback {
 public:
  Logger(const std::string& filename, const CSVLoggerOptions& options)
      : filename_(filename), options_(options) {
    if (options.separator.size() == 1) return;
    throw ConfigError("CSVLogger", "separator is one character", in_quotes(options.separator),
                      "pass one, such as \",\"");
  }

  void on_train_begin() override {
    keys_.clear();
    if (!params().is_first_rank) return;
    has_head_ = options_.append && has_a_line(filename_);
    waiting_.clear();
    warned_ = false;
    if (!file_.open(filename_, !options_.append)) fail_write(filename_);
  }

  void on_epoch_end(int64_t epoch, Logs& logs) override {
    if (!params().is_first_rank) return;
    if (keys_.empty()) choose_keys(logs);
    std::vector<std::string> row = {std::to_string(epoch)};
    for (const std::string& key : keys_) {
      const std::optional<double> value = find_value(logs, key);
      row.push_back(value ? python_repr(*value) : "NA");
    }
    write(row);
  }

  void on_train_end(const Logs&) override {
    if (!waiting_.empty() && !file_.append(waiting_)) {
      const char* reason = std::strerror(errno);
      const auto lines = std::count(waiting_.begin(), waiting_.end(), '\n');
      warn(FileError(
               filename_, "the lines of CSVLogger are written by the end of training",
               str(reason, ": the last ", lines, lines == 1 ? " line is" : " lines are", " lost"),
               "make space")
               .what());
    }
    waiting_.clear();
    file_ = RecordFile();
  }

 private:
  void choose_keys(const Logs& logs) {
    for (const auto& [name, value] : logs) keys_.push_back(name);
    std::sort(keys_.begin(), keys_.end());
    const bool validates = std::any_of(
        keys_.begin(), keys_.end(), [](const std::string& key) { return key.starts_with("val_"); });
    // Validation may begin in a later epoch.
    const size_t count = validates ? 0 : keys_.size();
    for (size_t i = 0; i < count; ++i) keys_.push_back("val_" + keys_[i]);
    if (has_head_) return;
    std::vector<std::string> head = {"epoch"};
    head.insert(head.end(), keys_.begin(), keys_.end());
    write(head);
  }

  void write(const std::vector<std::string>& row) {
    waiting_ += join(row, options_.separator) + "\r\n";
    if (file_.append(waiting_)) {
      waiting_.clear();
      return;
    }
    // A log that cannot be written does not end a run.
    const char* reason = std::strerror(errno);
    if (std::exchange(warned_, true)) return;
    warn(FileError(filename_, "the lines of CSVLogger wait until they can be written", reason,
                   "make space")
             .what());
  }

  std::string filename_;
  CSVLoggerOptions options_;
  bool has_head_ = false;
  std::vector<std::string> keys_;
  RecordFile file_;
  std::string waiting_;  ///< lines that are not in the file yet
  bool warned_ = false;
};

}  // namespace

CSVLogger::CSVLogger(const std::string& filename, const CSVLoggerOptions& options)
    : CallbackHandle(std::make_shared<Logger>(filename, options)) {}

}  // namespace tessera
