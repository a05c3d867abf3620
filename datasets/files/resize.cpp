#include <tessera/datasets/files/resize.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace tessera::detail {
namespace {

double sinc(double x) {
  return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
}

template <int Radius>
double lanczos(double x) {
  return std::abs(x) < Radius ? sinc(x) * sinc(x / Radius) : 0;
}

double triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }

/// Keys' cubic kernel with a = -1/2.
double keys_cubic(double x) {
  x = std::abs(x);
  if (x >= 2) return 0;
  return x < 1 ? (1.5 * x - 2.5) * x * x + 1 : ((-0.5 * x + 2.5) * x - 4) * x + 2;
}

double mitchell_cubic(double x) {
  x = std::abs(x);
  if (x >= 2) return 0;
  return x < 1 ? ((7 * x / 6 - 2) * x) * x + 8.0 / 9
               : ((-7 * x / 18 + 2) * x - 10.0 / 3) * x + 16.0 / 9;
}

/// Gaussian kernel with a standard deviation of half a pixel, truncated at three of them.
double gaussian(double x) { return std::abs(x) < 1.5 ? std::exp(-2 * x * x) : 0; }

double box(double x) { return x > -0.5 && x <= 0.5 ? 1 : 0; }

double hamming(double x) {
  return std::abs(x) < 1 ? sinc(x) * (0.54 + 0.46 * std::cos(std::numbers::pi * x)) : 0;
}

struct Kernel {
  const char* name;
  double radius;
  double (*weight)(double);
};
constexpr Kernel kernels[] = {{"bilinear", 1, triangle},
                              {"bicubic", 2, keys_cubic},
                              {"lanczos3", 3, lanczos<3>},
                              {"lanczos5", 5, lanczos<5>},
                              {"lanczos", 3, lanczos<3>},
                              {"gaussian", 1.5, gaussian},
                              {"mitchellcubic", 2, mitchell_cubic},
                              {"box", 0.5, box},
                              {"hamming", 1, hamming}};

/// The input pixels of a line that one output pixel is the weighted sum of.
struct Taps {
  int64_t first;
  std::vector<float> weights;
};

/// Returns the pixels that [begin, end) of a line covers, weighted by how much it covers of each.
Taps covered(double begin, double end, int64_t size) {
  const auto first = static_cast<int64_t>(std::floor(begin));
  const int64_t last = std::min(static_cast<int64_t>(std::ceil(end)), size);
  Taps taps{first, {}};
  for (int64_t i = first; i < last; ++i) {
    const double overlap = std::min<double>(end, static_cast<double>(i + 1)) -
                           std::max<double>(begin, static_cast<double>(i));
    taps.weights.push_back(static_cast<float>(overlap / (end - begin)));
  }
  return taps;
}

Taps weighted(const Kernel& kernel, double centre, double scale, int64_t size) {
  const double reach = kernel.radius * scale;
  const auto first = std::clamp<int64_t>(static_cast<int64_t>(std::floor(centre - reach)), 0, size);
  const auto last = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(centre + reach)), 0, size);
  std::vector<double> weights;
  double sum = 0;
  for (int64_t i = first; i < last; ++i) {
    // In this order of operations, as in Pillow: it decides about pixels on the edge of a box.
    weights.push_back(kernel.weight((static_cast<double>(i) - centre + 0.5) * (1 / scale)));
    sum += weights.back();
  }
  int64_t begin = first;
  while (weights.size() > 1 && weights.back() == 0) weights.pop_back();
  while (weights.size() > 1 && weights.front() == 0) {
    weights.erase(weights.begin());
    ++begin;
  }
  Taps taps{begin, {}};
  for (const double weight : weights) taps.weights.push_back(static_cast<float>(weight / sum));
  return taps;
}

/// Returns the taps of each of `to` output pixels of a line, from a line of `from` input pixels.
std::vector<Taps> line_taps(int64_t from, int64_t to, const ResizeOptions& options) {
  std::vector<Taps> all;
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const Kernel* kernel = nullptr;
  for (const Kernel& known : kernels) {
    if (options.interpolation == known.name) kernel = &known;
  }
  for (int64_t i = 0; i < to; ++i) {
    const double at = static_cast<double>(i) * scale;
    if (from == to) {
      all.push_back({i, {1}});
    } else if (options.interpolation == "area") {
      all.push_back(covered(at, at + scale, from));
    } else if (!kernel) {
      const auto nearest = static_cast<int64_t>(std::floor(at + scale / 2));
      all.push_back({std::min(nearest, from - 1), {1}});
    } else {
      const double centre = (static_cast<double>(i) + 0.5) * scale;
      all.push_back(weighted(*kernel, centre, options.antialias ? std::max(scale, 1.0) : 1, from));
    }
  }
  return all;
}

/// Resizes one row of pixels.
template <int64_t channels>
void resize_row(const uint8_t* row, const std::vector<Taps>& columns, float* out) {
  for (const Taps& taps : columns) {
    const uint8_t* from = row + taps.first * channels;
    for (int64_t c = 0; c < channels; ++c) {
      float sum = 0;
      for (size_t i = 0; i < taps.weights.size(); ++i) {
        sum += taps.weights[i] * static_cast<float>(from[static_cast<int64_t>(i) * channels + c]);
      }
      out[c] = sum;
    }
    out += channels;
  }
}

}  // namespace

std::span<const std::string> tf_interpolations() {
  static const std::array<std::string, 8> all{"bilinear", "nearest",  "bicubic",  "area",
                                              "lanczos3", "lanczos5", "gaussian", "mitchellcubic"};
  return all;
}

std::span<const std::string> pillow_interpolations() {
  static const std::array<std::string, 6> all{"nearest", "bilinear", "bicubic",
                                              "lanczos", "box",      "hamming"};
  return all;
}

void resize_image(const Image& image, const ImageRect& rect, int64_t height, int64_t width,
                  const ResizeOptions& options, float* out, int64_t row_step) {
  const std::vector<Taps> rows = line_taps(rect.height, height, options);
  const std::vector<Taps> columns = line_taps(rect.width, width, options);
  const auto count = static_cast<size_t>(width * image.channels);
  size_t max_taps = 1;
  for (const Taps& taps : rows) max_taps = std::max(max_taps, taps.weights.size());
  // Ring buffer of resized rows: successive output rows share some of them.
  std::vector<std::vector<float>> row_cache(max_taps, std::vector<float>(count));
  std::vector<int64_t> cached_row(max_taps, -1);
  const auto row_of = [&](int64_t y) -> const float* {
    const auto slot = static_cast<size_t>(y) % max_taps;
    if (cached_row[slot] != y) {
      cached_row[slot] = y;
      const uint8_t* from =
          image.pixels.data() + ((rect.top + y) * image.width + rect.left) * image.channels;
      const auto resize = image.channels == 1   ? resize_row<1>
                          : image.channels == 3 ? resize_row<3>
                                                : resize_row<4>;
      resize(from, columns, row_cache[slot].data());
    }
    return row_cache[slot].data();
  };
  for (int64_t y = 0; y < height; ++y) {
    const Taps& taps = rows[static_cast<size_t>(y)];
    float* to = out + y * row_step;
    for (size_t i = 0; i < taps.weights.size(); ++i) {
      const float* from = row_of(taps.first + static_cast<int64_t>(i));
      const float weight = taps.weights[i];
      if (i == 0) {
        for (size_t x = 0; x < count; ++x) to[x] = weight * from[x];
      } else {
        for (size_t x = 0; x < count; ++x) to[x] += weight * from[x];
      }
    }
  }
}

}  // namespace tessera::detail
