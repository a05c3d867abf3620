#include <cmath>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <tessera/datasets/files/image.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/tessera.hpp>

#include "apps/bench/compare.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

constexpr int64_t csv_rows = 1'000'000;
constexpr int64_t csv_columns = 30;
constexpr int64_t picture_count = 10'000;
constexpr int64_t picture_height = 300;
constexpr int64_t picture_width = 400;

/// Writes a CSV file of numbers with all digits, a sixth of the columns integers.
std::string share_csv(const CompareRun& run) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::string text;
  for (int64_t column = 0; column < csv_columns; ++column) {
    text += str(column == 0 ? "c" : ",c", column);
  }
  char number[32];
  for (int64_t row = 0; row < csv_rows; ++row) {
    for (int64_t column = 0; column < csv_columns; ++column) {
      text += column == 0 ? '\n' : ',';
      column % 6 == 0 ? std::snprintf(number, sizeof number, "%d", static_cast<int>(random() >> 44))
                      : std::snprintf(number, sizeof number, "%.15g", normal(random));
      text += number;
    }
  }
  const std::string path = run.folder + "/numbers.csv";
  write_file_atomically(path, text + "\n");
  return path;
}

/// Writes pictures of waves in two classes, with noise like a camera's.
std::string share_pictures(const CompareRun& run) {
  const std::string folder = run.folder + "/pictures";
  std::minstd_rand random(1);
  Image image{picture_height, picture_width, 3, {}};
  image.pixels.resize(static_cast<size_t>(3 * picture_height * picture_width));
  for (const char* name : {"/even", "/odd"}) std::filesystem::create_directories(folder + name);
  for (int64_t i = 0; i < picture_count; ++i) {
    const double slope = 0.02 + 0.0001 * static_cast<double>(i % 500);
    size_t at = 0;
    for (int64_t y = 0; y < picture_height; ++y) {
      const auto phase = static_cast<double>(y + i % 97);
      const int wave = static_cast<int>(80 * std::sin(slope * phase));
      for (int64_t x = 0; x < 3 * picture_width; ++x, ++at) {
        image.pixels[at] = static_cast<uint8_t>(120 + wave + x / 30 + (random() >> 8) % 16);
      }
    }
    write_image(str(folder, i % 2 == 0 ? "/even/" : "/odd/", i, ".jpg"), image);
  }
  return folder;
}

}  // namespace

void compare_csv(CompareRun& run) {
  const std::string path = share_csv(run);
  std::vector<Contender> all = {own_contender("own", "ours, read_csv", {"csv", "--data", path})};
  run.add_peer(all, "pandas", "pandas", ", read_csv by its C engine", "pandas_csv.py", {path});
  const Figures figures = take_turns(all, {.rounds = run.rounds, .steps = 1, .warm_up = 0});
  run.comparison.add_own(str("csv, ", csv_rows, " rows of ", csv_columns), figures.at("own"));
  run.add_other(figures, "own", "pandas", 1);
}

void compare_pictures(CompareRun& run) {
  const std::string folder = share_pictures(run);
  std::vector<Contender> all = {
      own_contender("own", "ours, decoded on 2 threads", {"pictures", "--data", folder})};
  run.add_peer(all, "torch", "pillow", ", DataLoader of 2 workers", "torch_pictures.py", {folder});
  const Figures figures = take_turns(all, {.rounds = run.rounds, .steps = 1, .warm_up = 0});
  run.comparison.add_own(str("pictures, ", picture_count, " JPEGs"), figures.at("own"));
  run.add_other(figures, "own", "torch", 1);
}

}  // namespace tessera::bench
