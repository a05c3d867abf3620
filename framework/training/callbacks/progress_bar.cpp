#include <tessera/framework/training/callbacks/progress_bar.hpp>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/terminal.hpp>

namespace tessera {

using namespace detail;
namespace {

constexpr int64_t bar_width = 20;
constexpr double redraw_interval = 0.05;
constexpr const char* bold = "\x1b[1m";
constexpr const char* green = "\x1b[32m";
constexpr const char* white = "\x1b[37m";

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Returns the width of the terminal; 0 if there is none.
int64_t terminal_columns() {
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string print(const char* format, double value) {
  const int size = std::snprintf(nullptr, 0, format, value);
  std::string text(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(text.data(), text.size(), format, value);
  text.pop_back();
  return text;
}

bool begins_code_point(char c) { return (c & 0xc0) != 0x80; }

/// Returns the columns on the screen, one for each code point.
int64_t width_of(const std::string& text) {
  return std::count_if(text.begin(), text.end(), begins_code_point);
}

/// Returns the longest prefix that fits into `cells` columns.
std::string truncated(const std::string& text, int64_t cells) {
  int64_t width = 0;
  const auto end = std::find_if(text.begin(), text.end(),
                                [&](char c) { return begins_code_point(c) && ++width > cells; });
  return {text.begin(), end};
}

/// Text and its width on the screen; escape sequences, if it has any, have no width.
struct Styled {
  bool colored = false;
  std::string text = {};
  int64_t width = 0;

  void plain(const std::string& part) {
    text += part;
    width += width_of(part);
  }
  void styled(const char* escape, const std::string& part) {
    if (colored) text += escape;
    plain(part);
    if (colored) text += "\x1b[0m";
  }
};

std::string cells_text(int64_t cells) {
  std::string text;
  for (int64_t i = 0; i < cells; ++i) text += "━";
  return text;
}

std::string remaining_text(double seconds) {
  if (!std::isfinite(seconds)) return "0s";
  const auto total_seconds = static_cast<long long>(seconds);
  char text[64];
  if (seconds > 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", total_seconds / 3600,
                  total_seconds % 3600 / 60, total_seconds % 60);
  } else if (seconds > 60) {
    std::snprintf(text, sizeof text, "%lld:%02lld", total_seconds / 60, total_seconds % 60);
  } else {
    std::snprintf(text, sizeof text, "%llds", total_seconds);
  }
  return text;
}

std::string step_text(double seconds) {
  if (seconds >= 1 || seconds == 0) return print(" %.0fs/step", seconds);
  if (seconds >= 1e-3) return print(" %.0fms/step", seconds * 1e3);
  return print(" %.0fus/step", seconds * 1e6);
}

/// Three digits: "0.25 rows/s", "2.67k rows/s", "1.5M rows/s".
std::string rows_text(double rate) {
  if (rate >= 999.5e6) return print("%.3gG rows/s", rate / 1e9);
  if (rate >= 999.5e3) return print("%.3gM rows/s", rate / 1e6);
  if (rate >= 999.5) return print("%.3gk rows/s", rate / 1e3);
  return print("%.3g rows/s", rate);
}

std::string value_text(double value) {
  // printf gives NaN a sign, which means nothing here.
  if (std::isnan(value)) return "nan";
  return print(std::abs(value) > 1e-3 ? "%.4f" : "%.4e", value);
}

std::string count_text(int64_t current, std::optional<int64_t> target) {
  const std::string count = std::to_string(current);
  const std::string total = target.value_or(0) > 0 ? std::to_string(*target) : "Unknown";
  const size_t width = target.value_or(0) > 0 ? total.size() : 7;
  return std::string(width - std::min(width, count.size()), ' ') + count + "/" + total;
}

void draw_bar(Styled& line, int64_t current, int64_t target) {
  const double done = static_cast<double>(current) / static_cast<double>(target);
  const int64_t cells = std::min(static_cast<int64_t>(bar_width * done), bar_width);
  line.styled(bold, count_text(current, target));
  line.plain(" ");
  if (cells > 0) line.styled(green, cells_text(cells));
  // Without colours the cells to come are blank, to differ from those that are done.
  const int64_t rest = bar_width - cells;
  line.styled(white, line.colored ? cells_text(rest) : std::string(static_cast<size_t>(rest), ' '));
}

}  // namespace

ProgressBar::ProgressBar(ProgressBarOptions options) : options_(std::move(options)) {
  if (options_.verbose < 0 || options_.verbose > 2) {
    throw ConfigError("verbose", "must be 0 (silent), 1 (bar) or 2 (one line per epoch)",
                      std::to_string(options_.verbose), "pass 0, 1 or 2");
  }
  if (!options_.is_terminal) options_.is_terminal = [] { return isatty(STDOUT_FILENO) != 0; };
  if (!options_.has_colors) options_.has_colors = [] { return !colors_refused(); };
  if (!options_.clock) options_.clock = steady_seconds;
  if (!options_.columns) options_.columns = terminal_columns;
  if (options_.out == nullptr) options_.out = &std::cout;
  in_place_ = options_.verbose == 1 && options_.is_terminal();
  colored_ = in_place_ && options_.has_colors();
  start_ = options_.clock();
}

ProgressBar::~ProgressBar() {
  if (line_open_) *options_.out << '\n' << std::flush;
}

void ProgressBar::start(std::optional<int64_t> target) {
  target_ = target ? target : learned_target_;
  values_.clear();
  first_step_ = seen_ = rows_ = rows_of_first_step_ = 0;
  first_step_end_.reset();
  steps_end_.reset();
  last_draw_.reset();
  last_width_ = 0;
  start_ = options_.clock();
}

void ProgressBar::start_epoch(int64_t epoch, int64_t epochs, std::optional<int64_t> target) {
  start(target);
  if (options_.verbose == 0 || epochs <= 1) return;
  put("Epoch " + std::to_string(epoch + 1) + "/" + std::to_string(epochs) + "\n");
}

void ProgressBar::update(int64_t current, const Logs& logs, int64_t rows) {
  if (options_.verbose == 0) return;
  remember(logs);
  seen_ = current;
  rows_ += rows;
  const double now = options_.clock();
  // Before the early return: the mean needs the end of the first step, drawn or not.
  if (current == first_step_ + 1) {
    first_step_end_ = now;
    rows_of_first_step_ = rows_;
  }
  if (!in_place_ || (last_draw_ && now - *last_draw_ < redraw_interval)) return;
  draw(now, false);
}

void ProgressBar::end_steps() {
  if (!steps_end_) steps_end_ = options_.clock();
}

void ProgressBar::finish(const Logs& logs) {
  if (!target_) learned_target_ = target_ = seen_;
  seen_ = *target_;
  if (options_.verbose == 0) return;
  remember(logs);
  const double now = options_.clock();
  if (in_place_) {
    draw(now, true);
  } else {
    write_line(now);
  }
}

void ProgressBar::remember(const Logs& logs) {
  for (const auto& [name, value] : logs) {
    const auto known = std::find_if(values_.begin(), values_.end(),
                                    [&name = name](const auto& v) { return v.first == name; });
    if (known == values_.end()) {
      values_.emplace_back(name, value);
    } else {
      known->second = value;
    }
  }
}

double ProgressBar::seconds_per_step(double now) const {
  const int64_t made = seen_ - first_step_;
  if (made <= 0) return 0;
  if (first_step_end_ && made > 1) {
    return (now - *first_step_end_) / static_cast<double>(made - 1);
  }
  return (now - start_) / static_cast<double>(made);
}

/// Returns 0 if unknown.
double ProgressBar::rows_per_second(double now) const {
  const bool has_mean = first_step_end_ && rows_ > rows_of_first_step_;
  const double seconds = steps_end_.value_or(now) - (has_mean ? *first_step_end_ : start_);
  const int64_t rows = has_mean ? rows_ - rows_of_first_step_ : rows_;
  return seconds > 0 ? static_cast<double>(rows) / seconds : 0;
}

void ProgressBar::draw(double now, bool final) {
  const bool bounded = target_.value_or(0) > 0;
  const double step = seconds_per_step(now);
  Styled line{.colored = colored_};
  if (bounded) {
    draw_bar(line, seen_, *target_);
  } else {
    line.plain(count_text(seen_, target_));
  }
  line.plain(" ");
  line.styled(bold, bounded && !final ? remaining_text(step * static_cast<double>(*target_ - seen_))
                                      : print("%.0fs", now - start_));
  const std::string rest = step_text(step) + rate_text(now) + values_text();
  const int64_t columns = options_.columns();
  const int64_t room = columns - line.width;
  if (final || columns == 0 || width_of(rest) <= room) {
    line.plain(rest);
  } else {
    line.plain(truncated(step_text(step) + values_text(), room));
  }
  std::string text(static_cast<size_t>(last_width_), '\b');
  text += "\r" + line.text;
  text.append(static_cast<size_t>(std::max<int64_t>(last_width_ - line.width, 0)), ' ');
  line_open_ = !final;
  put(final ? text + "\n" : text);
  last_width_ = line.width;
  last_draw_ = now;
}

void ProgressBar::write_line(double now) {
  if (target_.value_or(0) <= 0) return;
  put(count_text(seen_, target_) + print(" - %.0fs", now - start_) + " -" +
      step_text(seconds_per_step(now)) + rate_text(now) + values_text() + "\n");
}

std::string ProgressBar::rate_text(double now) const {
  const double rate = rows_per_second(now);
  return rate > 0 ? " - " + rows_text(rate) : "";
}

std::string ProgressBar::values_text() const {
  std::string text;
  for (const auto& [name, value] : values_) text += " - " + name + ": " + value_text(value);
  return text;
}

void ProgressBar::put(const std::string& text) { *options_.out << text << std::flush; }

}  // namespace tessera
