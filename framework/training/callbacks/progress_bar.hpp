#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include <tessera/framework/training/logs.hpp>

namespace tessera {

/// The options of ProgressBar.
struct ProgressBarOptions {
  /// 0 silent, 1 a bar redrawn in place, 2 one line when an epoch is done.
  int verbose = 1;
  /// Output stream (default: std::cout).
  std::ostream* out = nullptr;
  /// Whether `out` understands control characters (default: whether standard output is a terminal).
  std::function<bool()> is_terminal = {};
  /// Whether a bar has colours and bold text (default: unless $NO_COLOR is set, or $TERM is
  /// "dumb").
  std::function<bool()> has_colors = {};
  /// Returns seconds of a monotonic clock (default: std::chrono::steady_clock).
  std::function<double()> clock = {};
  /// Returns the width of `out` in columns, 0 if unknown (default: standard output's terminal).
  std::function<int64_t()> columns = {};
};

/// Progress of an epoch, byte for byte as Keras 3's Progbar draws it, except that
/// - an output that is not a terminal gets one plain line per epoch (verbose 2) and no control
///   characters;
/// - rows per second follow the step time if rows are reported, "12ms/step - 2.67k rows/s - loss:
/// …";
/// - a line that will be redrawn is truncated at the terminal's edge, which backspaces do not
/// cross:
///   the rate is dropped first, then values from the right.
///
/// Values are shown as given (Keras' stateful metrics), in order of first appearance, as `%.4f` if
/// |v| > 1e-3 and as `%.4e` otherwise. The bar is redrawn at most every 0.05 s. The means of step
/// time and rate leave out the first step. Keras name: keras.utils.Progbar with
/// keras.callbacks.ProgbarLogger.
class ProgressBar {
 public:
  /// Throws ConfigError if `verbose` is not 0, 1 or 2.
  explicit ProgressBar(ProgressBarOptions options = {});
  /// Ends a line left open by an exception, so that later output starts a new line.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Starts counting at zero. Without a `target` (a stream) the count of the previous finished run
  /// is the target; if there is none, "Unknown" is shown.
  void start(std::optional<int64_t> target);

  /// Counts the steps before `step` (from 0) as done by an earlier run: they count towards the
  /// target and in no mean. Call it between start() and the first update().
  void start_at(int64_t step) { first_step_ = step; }

  /// Calls start(target) and writes "Epoch i/N" if N > 1. `epoch` counts from 0.
  void start_epoch(int64_t epoch, int64_t epochs, std::optional<int64_t> target);

  /// Shows that `current` steps are done, unless the last drawing is too recent. `rows` counts the
  /// rows of the steps since the last call.
  void update(int64_t current, const Logs& logs = {}, int64_t rows = 0);

  /// Marks the end of the steps, so that time until finish(), such as a validation's, does not
  /// lower the rows per second. The step time on the finished line includes it, as in Keras. A
  /// second call does nothing.
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
  bool colored_ = false;
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
