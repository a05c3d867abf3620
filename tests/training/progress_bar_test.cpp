#include <tessera/framework/training/callbacks/progress_bar.hpp>

#include <cmath>
#include <limits>
#include <sstream>

#include <tessera/framework/base/error.hpp>
#include "tests/support/catch.hpp"

namespace progress_bar_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// A bar that writes to a string, with a manual clock.
struct Screen {
  explicit Screen(int verbose = 1, bool terminal = true)
      : bar({.verbose = verbose,
             .out = &out,
             .is_terminal = [terminal] { return terminal; },
             .has_colors = [this] { return colored; },
             .clock = [this] { return now; },
             .columns = [this] { return columns; }}) {}

  /// Returns what was written since the last call.
  std::string take() {
    std::string text = out.str();
    out.str("");
    return text;
  }

  double now = 1000;
  int64_t columns = 0;
  bool colored = true;
  std::ostringstream out;
  ProgressBar bar;
};

std::string times(int n, const std::string& text) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

/// Returns the text of one metric as the bar shows it.
std::string shown(double value) {
  Screen screen(2);
  screen.bar.start(1);
  screen.bar.finish({{"m", value}});
  const std::string line = screen.take();
  const size_t at = line.find("m: ");
  return line.substr(at + 3, line.size() - at - 4);
}

/// Returns the rate that is shown for a step of `rows` rows in `seconds`.
std::string rate(int64_t rows, double seconds = 1) {
  Screen screen(2);
  screen.bar.start(1);
  screen.now += seconds;
  screen.bar.update(1, {}, rows);
  screen.bar.finish();
  const std::string line = screen.take();
  const size_t at = line.rfind(" - ") + 3;
  return line.substr(at, line.size() - at - 1);
}

/// Returns the remaining time shown after step 1 of `target` steps that take `step` seconds each.
std::string remaining(double step, int64_t target) {
  Screen screen;
  screen.bar.start(target);
  screen.now += step;
  screen.bar.update(1);
  const std::string text = screen.take();
  const size_t from = text.rfind("\x1b[1m") + 4;
  return text.substr(from, text.rfind("\x1b[0m") - from);
}

}  // namespace

TEST_CASE("the bar is byte for byte that of Keras 3", "[progress_bar]") {
  Screen screen;
  screen.bar.start_epoch(0, 1, 1875);
  CHECK(screen.take().empty());

  screen.now = 1000.6;
  screen.bar.update(1, {{"accuracy", 0.9012}, {"loss", 0.3245}});
  CHECK(screen.take() ==
        "\r\x1b[1m   1/1875\x1b[0m \x1b[37m━━━━━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m18:44"
        "\x1b[0m 600ms/step - accuracy: 0.9012 - loss: 0.3245");

  screen.now = 1000.6 + 937 * 0.002;
  screen.bar.update(938, {{"accuracy", 0.9021}, {"loss", 0.3245}});
  CHECK(screen.take() == times(81, "\b") +
                             "\r\x1b[1m 938/1875\x1b[0m \x1b[32m━━━━━━━━━━\x1b[0m\x1b[37m━━━━━━━━━━"
                             "\x1b[0m \x1b[1m1s\x1b[0m 2ms/step - accuracy: 0.9021 - loss: 0.3245"
                             "     ");

  screen.now = 1004.9;
  screen.bar.finish(
      {{"accuracy", 0.9035}, {"loss", 0.3201}, {"val_accuracy", 0.9711}, {"val_loss", 9.5e-4}});
  CHECK(screen.take() ==
        times(76, "\b") +
            "\r\x1b[1m1875/1875\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m"
            "\x1b[0m \x1b[1m5s\x1b[0m 2ms/step - accuracy: 0.9035 - loss: 0.3201 - "
            "val_accuracy: 0.9711 - val_loss: 9.5000e-04\n");
}

TEST_CASE("verbose 2 writes one line per epoch", "[progress_bar]") {
  Screen screen(2);
  screen.bar.start_epoch(0, 2, 1875);
  CHECK(screen.take() == "Epoch 1/2\n");
  screen.now += 0.6;
  screen.bar.update(1, {{"accuracy", 0.5}, {"loss", 1.5}});
  CHECK(screen.take().empty());
  screen.now = 1004.3;
  screen.bar.finish({{"accuracy", 0.9035}, {"loss", 0.3201}});
  CHECK(screen.take() == "1875/1875 - 4s - 2ms/step - accuracy: 0.9035 - loss: 0.3201\n");
}

TEST_CASE("an output that is no terminal gets plain lines", "[progress_bar]") {
  Screen screen(1, false);
  std::string all;
  for (int epoch = 0; epoch < 2; ++epoch) {
    screen.bar.start_epoch(epoch, 2, 3);
    for (int step = 1; step <= 3; ++step) {
      screen.now += 1;
      screen.bar.update(step, {{"loss", 1.0 / step}});
    }
    screen.bar.finish({{"loss", 0.25}, {"val_loss", -0.5}});
  }
  CHECK(screen.take() ==
        "Epoch 1/2\n3/3 - 3s - 1s/step - loss: 0.2500 - val_loss: -0.5000\n"
        "Epoch 2/2\n3/3 - 3s - 1s/step - loss: 0.2500 - val_loss: -0.5000\n");
}

TEST_CASE("verbose 0 writes nothing", "[progress_bar]") {
  Screen screen(0);
  screen.bar.start_epoch(0, 5, 2);
  screen.bar.update(1, {{"loss", 1}});
  screen.bar.finish({{"loss", 1}});
  CHECK(screen.take().empty());
}

TEST_CASE("an unknown number of steps is learned from the first epoch", "[progress_bar]") {
  Screen screen;
  screen.bar.start_epoch(0, 2, std::nullopt);
  CHECK(screen.take() == "Epoch 1/2\n");
  screen.now += 2;
  screen.bar.update(1, {{"loss", 2}});
  CHECK(screen.take() == "\r      1/Unknown \x1b[1m2s\x1b[0m 2s/step - loss: 2.0000");
  screen.now += 2;
  screen.bar.update(2, {{"loss", 1}});
  CHECK(screen.take() ==
        times(41, "\b") + "\r      2/Unknown \x1b[1m4s\x1b[0m 2s/step - loss: 1.0000");
  screen.bar.finish({{"loss", 1}});
  CHECK(screen.take() ==
        times(41, "\b") +
            "\r\x1b[1m2/2\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m\x1b[0m "
            "\x1b[1m4s\x1b[0m 2s/step - loss: 1.0000\n");

  screen.bar.start_epoch(1, 2, std::nullopt);
  CHECK(screen.take() == "Epoch 2/2\n");
  screen.now += 2;
  screen.bar.update(1, {{"loss", 1}});
  CHECK(screen.take().rfind("\r\x1b[1m1/2\x1b[0m \x1b[32m━━━━━━━━━━\x1b[0m", 0) == 0);
}

TEST_CASE("a run without steps shows no bar", "[progress_bar]") {
  Screen screen;
  screen.bar.start(0);
  screen.bar.finish();
  CHECK(screen.take() == "\r      0/Unknown \x1b[1m0s\x1b[0m 0s/step\n");
}

TEST_CASE("the remaining time has the formats s, m:ss and h:mm:ss", "[progress_bar]") {
  CHECK(remaining(0.001, 2) == "0s");
  CHECK(remaining(1, 61) == "60s");
  CHECK(remaining(1, 62) == "1:01");
  CHECK(remaining(1, 3601) == "60:00");
  CHECK(remaining(1, 3602) == "1:00:01");
  CHECK(remaining(100, 1001) == "27:46:40");
}

TEST_CASE("the time per step has the formats s, ms and us", "[progress_bar]") {
  const auto line = [](double seconds) {
    Screen screen(2);
    screen.bar.start(1);
    screen.now += seconds;
    screen.bar.update(1);
    screen.bar.finish();
    return screen.take();
  };
  CHECK(line(0) == "1/1 - 0s - 0s/step\n");
  CHECK(line(0.00025) == "1/1 - 0s - 250us/step\n");
  CHECK(line(0.25) == "1/1 - 0s - 250ms/step\n");
  CHECK(line(3) == "1/1 - 3s - 3s/step\n");
}

TEST_CASE("the first step is left out of the time per step", "[progress_bar]") {
  Screen screen(2);
  screen.bar.start(3);
  screen.now += 10;
  screen.bar.update(1);
  screen.now += 4;
  screen.bar.update(3);
  screen.bar.finish();
  CHECK(screen.take() == "3/3 - 14s - 2s/step\n");
}

TEST_CASE("rows per second follow the time per step", "[progress_bar]") {
  Screen screen;
  screen.bar.start(4);
  screen.now += 2;
  screen.bar.update(1, {{"loss", 1}}, 32);
  CHECK(screen.take().ends_with("\x1b[0m 2s/step - 16 rows/s - loss: 1.0000"));
  screen.now += 1;
  screen.bar.update(2, {}, 32);
  CHECK(screen.take().ends_with("\x1b[0m 1s/step - 32 rows/s - loss: 1.0000"));
  screen.now += 3;
  screen.bar.update(4, {}, 56);
  screen.take();
  screen.bar.finish();
  // Without the first step: 88 rows in four seconds.
  CHECK(screen.take().ends_with("\x1b[1m6s\x1b[0m 1s/step - 22 rows/s - loss: 1.0000\n"));
}

TEST_CASE("a rate has three digits", "[progress_bar]") {
  CHECK(rate(1, 400) == "0.0025 rows/s");
  CHECK(rate(1, 4) == "0.25 rows/s");
  CHECK(rate(25, 2) == "12.5 rows/s");
  CHECK(rate(999) == "999 rows/s");
  CHECK(rate(9996, 10) == "1k rows/s");
  CHECK(rate(2670) == "2.67k rows/s");
  CHECK(rate(999'600) == "1M rows/s");
  CHECK(rate(12'345'678) == "12.3M rows/s");
  CHECK(rate(2'000'000'000) == "2G rows/s");
  // Nothing is known, or no time has passed.
  CHECK(rate(0) == "1s/step");
  CHECK(rate(32, 0) == "0s/step");
}

TEST_CASE("a rate covers the steps only, not what follows them", "[progress_bar]") {
  Screen screen(2);
  for (int epoch = 0; epoch < 2; ++epoch) {
    screen.bar.start(2);
    for (int step = 1; step <= 2; ++step) {
      screen.now += 1;
      screen.bar.update(step, {}, 10);
    }
    screen.bar.end_steps();
    screen.now += 8;
    screen.bar.end_steps();
    screen.bar.finish({{"val_loss", 1}});
    CHECK(screen.take() == "2/2 - 10s - 9s/step - 10 rows/s - val_loss: 1.0000\n");
  }
}

TEST_CASE("steps of an earlier run are in no mean", "[progress_bar]") {
  Screen screen;
  screen.bar.start(100);
  screen.bar.start_at(90);
  screen.now += 3;
  screen.bar.update(91, {}, 6);
  CHECK(screen.take().ends_with("\x1b[1m27s\x1b[0m 3s/step - 2 rows/s"));
  screen.now += 1;
  screen.bar.update(92, {}, 6);
  CHECK(screen.take().ends_with("\x1b[1m8s\x1b[0m 1s/step - 6 rows/s "));
}

TEST_CASE("a line that will be redrawn ends at the terminal's edge", "[progress_bar]") {
  Screen screen;
  screen.bar.start(2);
  const auto line_after = [&](int64_t columns) {
    screen.columns = columns;
    screen.now += 1;
    screen.bar.update(1, {{"größe", 1}, {"loss", 2}}, 7);
    const std::string text = screen.take();
    // The bold time follows the last step's spaces.
    const std::string line = text.substr(text.rfind("\x1b[0m") + 4);
    return line.substr(0, line.find_last_not_of(' ') + 1);
  };
  // "1/2 ━━━━━━━━━━━━━━━━━━━━ 3s" has 27 cells.
  CHECK(line_after(27 + 51) == " 1s/step - 7 rows/s - größe: 1.0000 - loss: 2.0000");
  CHECK(line_after(27 + 39) == " 2s/step - größe: 1.0000 - loss: 2.0000");
  CHECK(line_after(27 + 13) == " 3s/step - gr");
  CHECK(line_after(27 + 14) == " 4s/step - grö");
  CHECK(line_after(27) == "");
  CHECK(line_after(10) == "");
  screen.bar.finish();
  CHECK(screen.take().ends_with(" - größe: 1.0000 - loss: 2.0000\n"));
}

TEST_CASE("redraws are at least 0.05 s apart", "[progress_bar]") {
  Screen screen;
  screen.bar.start(10);
  screen.bar.update(1);
  CHECK_FALSE(screen.take().empty());
  screen.now += 0.04;
  screen.bar.update(2, {{"loss", 7}});
  CHECK(screen.take().empty());
  screen.now += 0.02;
  screen.bar.update(3);
  // A value of a step that was not drawn is shown with the next.
  CHECK(screen.take().find("loss: 7.0000") != std::string::npos);
}

TEST_CASE("values at or below 1e-3 are shown with an exponent", "[progress_bar]") {
  CHECK(shown(0.3245) == "0.3245");
  CHECK(shown(12345.6) == "12345.6000");
  CHECK(shown(1e-3) == "1.0000e-03");
  CHECK(shown(1.0001e-3) == "0.0010");
  CHECK(shown(0) == "0.0000e+00");
  CHECK(shown(-0.5) == "-0.5000");
  CHECK(shown(-1e-4) == "-1.0000e-04");
  CHECK(shown(1e300).size() == 306);
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(shown(infinity) == "inf");
  CHECK(shown(-infinity) == "-inf");
  CHECK(shown(std::nan("")) == "nan");
  CHECK(shown(-std::nan("")) == "nan");
}

TEST_CASE("values keep the order of their first appearance", "[progress_bar]") {
  Screen screen(2);
  screen.bar.start(2);
  screen.bar.update(1, {{"b", 1}, {"a", 2}});
  screen.bar.finish({{"a", 3}, {"c", 4}, {"b", 5}});
  const std::string line = screen.take();
  CHECK(line.substr(line.find(" - b")) == " - b: 5.0000 - a: 3.0000 - c: 4.0000\n");
  screen.bar.start(2);
  screen.bar.finish({{"c", 1}});
  CHECK(screen.take() == "2/2 - 0s - 0s/step - c: 1.0000\n");
}

TEST_CASE("a bar destroyed before its end terminates its line", "[progress_bar]") {
  std::ostringstream out;
  {
    ProgressBar bar({.out = &out, .is_terminal = [] { return true; }, .clock = [] { return 0.0; }});
    bar.start(4);
    bar.update(2);
  }
  CHECK(out.str().back() == '\n');
}

TEST_CASE("a bar without colours has no escape sequences", "[progress_bar]") {
  std::ostringstream out;
  ProgressBar bar({.out = &out,
                   .is_terminal = [] { return true; },
                   .has_colors = [] { return false; },
                   .clock = [] { return 0.0; },
                   .columns = [] { return 80; }});
  bar.start(2);
  bar.update(1, {{"loss", 0.5}});
  CHECK(out.str() == "\r1/2 ━━━━━━━━━━           0s 0s/step - loss: 0.5000");
  bar.finish({{"loss", 0.25}});
  CHECK(out.str().find('\x1b') == std::string::npos);
  CHECK(out.str().ends_with("2/2 ━━━━━━━━━━━━━━━━━━━━ 0s 0s/step - loss: 0.2500\n"));
}

TEST_CASE("an invalid verbosity is refused", "[progress_bar]") {
  CHECK_THROWS_WITH(ProgressBar({.verbose = 3}),
                    "[verbose] must be 0 (silent), 1 (bar) or 2 (one line per epoch). Received: 3. "
                    "To fix: pass 0, 1 or 2.");
  CHECK_THROWS_AS(ProgressBar({.verbose = -1}), ConfigError);
}

}  // namespace progress_bar_test
