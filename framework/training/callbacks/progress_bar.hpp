#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include <tessera/framework/training/logs.hpp>

namespace tessera {

/// Where a ProgressBar writes and what it takes for time.
struct ProgressBarOptions {
  /// 0 silent, 1 a bar redrawn in place, 2 one line when an epoch is done.
  int verbose = 1;
  /// Target of the text; std::cout if null.
  std::ostream* out = nullptr;
  /// Whether `out` understands control characters; asks the standard output if empty.
  std::function<bool()> is_terminal = {};
  /// Seconds on a clock that never goes back; the steady clock if empty.
  std::function<double()> clock = {};
  /// Cells in a line of `out`, 0 if not known; asks the standard output if empty.
  std::function<int64_t()> columns = {};
};

/// Progress of an epoch, byte for byte as Keras 3's Progbar draws it, save that
/// - an output which is no terminal gets one plain line per epoch (verbose 2) and never a control
///   character;
/// - rows a second follow the step time where rows are told, "12ms/step - 2.67k rows/s - loss: …";
/// - a line that is to be redrawn is cut at the terminal's edge, which backspaces do not cross: the
///   rate goes first, then values from the right.
///
/// Values are shown as given (Keras' stateful metrics), in order of first appearance, as `%.4f` if
/// |v| > 1e-3 and as `%.4e` else. The bar is redrawn every 0.05 s at most. Step time and rate leave
/// the first step out of their means. Keras name: keras.utils.Progbar with
/// keras.callbacks.ProgbarLogger.
class ProgressBar {
 public:
  /// Throws ConfigError if `verbose` is not 0, 1 or 2.
  explicit ProgressBar(ProgressBarOptions options = {});
  /// Ends a line left open by an exception, so that what follows starts a line of its own.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Starts counting at zero. An absent `target` (a stream) is shown as "Unknown"; the count of the
  /// run before, once finished, takes its place.
  void start(std::optional<int64_t> target);

  /// The steps before the one of this number, from 0, were made by an earlier run: they count
  /// towards the target and in no mean. Between start() and the first update().
  void start_at(int64_t step) { first_step_ = step; }

  /// `start(target)`; writes "Epoch i/N" first if N > 1. `epoch` counts from 0.
  void start_epoch(int64_t epoch, int64_t epochs, std::optional<int64_t> target);

  /// Shows that `current` steps are done, unless the last drawing is too recent. `rows` are those
  /// of the steps since the last call.
  void update(int64_t current, const Logs& logs = {}, int64_t rows = 0);

  /// The steps are done: what comes before finish(), such as a validation, does not lower the rate
  /// of rows. Keras' step time on the finished line contains it. A second call does nothing.
  void end_steps();

  /// Draws the finished bar with the elapsed time and ends the line.
  void finish(const Logs& logs = {});

 private:
  void remember(const Logs& logs);
  double seconds_per_step(double now) const;
  double rows_per_second(double now) const;
  void draw(double now, bool final);
  void write_line(double now);
  std::string rate_text(double now) const;
  std::string values_text() const;
  void put(const std::string& text);

  ProgressBarOptions options_;
  bool in_place_ = false;
  std::optional<int64_t> target_;
  std::optional<int64_t> learned_target_;
  Logs values_;
  int64_t first_step_ = 0;
  int64_t seen_ = 0;
  int64_t rows_ = 0;
  int64_t rows_of_first_step_ = 0;
  double start_ = 0;
  std::optional<double> first_step_end_;
  std::optional<double> steps_end_;
  std::optional<double> last_draw_;
  int64_t last_width_ = 0;
  bool line_open_ = false;
};

}  // namespace tessera
