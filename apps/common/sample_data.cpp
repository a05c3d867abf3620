#include "apps/common/sample_data.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <numbers>

#include <ATen/ATen.h>

#include <tessera/datasets/image_folder.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>

namespace tessera::app {

using namespace detail;

namespace {

/// Returns a pseudo-random number below `count`, a function of `seed` and `row`.
int64_t pick(int64_t seed, int64_t row, int64_t count) {
  return (row * 7919 + seed * 104729 + row * row * 31) % 2003 % count;
}

template <size_t n>
const char* pick(int64_t seed, int64_t row, const std::array<const char*, n>& words) {
  return words[size_t(pick(seed, row, n))];
}

std::string sub_folder(const std::string& folder, const char* name) {
  const std::string path = folder + "/" + name;
  std::filesystem::create_directory(path);
  return path;
}

}  // namespace

std::string sample_patients(const std::string& folder) {
  static constexpr std::array thals = {"normal", "fixed", "reversible"};
  std::string text =
      "age,sex,cp,trestbps,chol,fbs,restecg,thalach,exang,oldpeak,slope,ca,thal,"
      "target\n";
  for (int64_t row = 0; row < 303; ++row) {
    const int64_t age = 29 + pick(1, row, 49), sex = pick(2, row, 2), cp = pick(3, row, 5);
    const std::string thal = pick(4, row, thals);
    const int64_t peak = pick(5, row, 62), ca = pick(6, row, 4);
    const double score = double(age) / 20 + double(cp + ca) + 2 * (thal == "reversible") +
                         double(peak) / 10 - 2 * double(sex);
    text += str(age, ",", sex, ",", cp, ",", 94 + pick(7, row, 107), ",", 126 + pick(8, row, 439),
                ",", pick(9, row, 2), ",", pick(10, row, 3), ",", 71 + pick(11, row, 132), ",",
                pick(12, row, 2), ",", peak / 10, ".", peak % 10, ",", 1 + pick(13, row, 3), ",",
                ca, ",", thal, ",", int(score > 9), "\n");
  }
  write_file_atomically(folder + "/heart.csv", text);
  return folder + "/heart.csv";
}

std::string sample_weather(const std::string& folder) {
  static constexpr std::array columns = {"p (mbar)",     "T (degC)",  "VPmax (mbar)",
                                         "VPdef (mbar)", "sh (g/kg)", "rho (g/m**3)",
                                         "wv (m/s)"};
  std::string text = "Date Time";
  for (const char* column : columns) text += str(",", column);
  for (int64_t row = 0; row < 6000; ++row) {
    std::array<char, 64> cell{};
    const int64_t day = row / 144;
    std::snprintf(cell.data(), cell.size(), "\n%02d.%02d.2009 %02d:%d0:00", int(day % 28) + 1,
                  int(day / 28) + 1, int(row / 6 % 24), int(row % 6));
    text += cell.data();
    const double angle = 2 * std::numbers::pi * double(row) / 144;
    for (int64_t k = 0; k < std::ssize(columns); ++k) {
      const double noise = double(pick(k, row, 2003)) / 1001 - 1;
      std::snprintf(cell.data(), cell.size(), ",%.2f",
                    std::sin(angle + double(k)) * double(k + 1) + 10 * double(k) + noise);
      text += cell.data();
    }
  }
  write_file_atomically(folder + "/weather.csv", text + "\n");
  return folder + "/weather.csv";
}

std::string sample_reviews(const std::string& folder) {
  static constexpr std::array good = {"a",   "wonderful", "film",   "with", "moving", "story",
                                      "and", "brilliant", "acting", "that", "i",      "loved"};
  static constexpr std::array bad = {"a",   "awful",    "movie",  "with", "dull", "plot",
                                     "and", "terrible", "boring", "that", "i",    "hated"};
  for (const bool praise : {false, true}) {
    const auto &own = praise ? good : bad, &other = praise ? bad : good;
    const std::string path = sub_folder(folder, praise ? "pos" : "neg");
    for (int64_t i = 0; i < 60; ++i) {
      std::string text;
      for (int64_t w = 0; w < 20 + i % 17; ++w) {
        text += str(w > 0 ? " " : "", pick(w, i, (w + i) % 5 ? own : other));
      }
      write_file_atomically(str(path, "/", i, "_", i % 10, ".txt"),
                            text + (i % 4 ? "." : "!<br />"));
    }
  }
  return folder;
}

std::string sample_stripes(const std::string& folder) {
  constexpr int64_t height = 48, width = 40;
  const at::Tensor y = at::arange(height).reshape({height, 1}).expand({height, width});
  const at::Tensor x = at::arange(width).expand({height, width});
  for (const char* name : {"across", "upright"}) {
    const std::string path = sub_folder(folder, name);
    for (int64_t i = 0; i < 200; ++i) {
      const int64_t period = 6 + pick(1, i, 9), first = pick(2, i, 15);
      const at::Tensor phase = ((name[0] == 'a' ? y : x) + first) % period;
      const at::Tensor colour =
          at::tensor({float(pick(3, i, 256)), float(pick(4, i, 256)), float(pick(5, i, 256))});
      const at::Tensor ground = (at::arange(height * width * 3) * 7919 + i * 31) % 81 + 80;
      save_img(str(path, "/", i, ".png"),
               at::where((phase < period / 2).unsqueeze(2), colour,
                         ground.reshape({height, width, 3}).to(at::kFloat)),
               {.scale = false});
    }
  }
  return folder;
}

}  // namespace tessera::app
