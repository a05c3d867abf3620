#include <tessera/datasets/files/synthetic_digits.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

constexpr int64_t side = 28;

struct Point {
  float x;
  float y;
};

using Stroke = std::vector<Point>;

/// The strokes of each digit in a unit square, y downwards.
const std::array<std::vector<Stroke>, 10>& digit_strokes() {
  static const std::array<std::vector<Stroke>, 10> strokes{{
      {{{.5f, 0},
        {.22f, .1f},
        {.1f, .5f},
        {.22f, .9f},
        {.5f, 1},
        {.78f, .9f},
        {.9f, .5f},
        {.78f, .1f},
        {.5f, 0}}},
      {{{.3f, .22f}, {.55f, 0}, {.52f, 1}}},
      {{{.1f, .25f},
        {.25f, .05f},
        {.5f, 0},
        {.78f, .08f},
        {.86f, .3f},
        {.68f, .56f},
        {.1f, 1},
        {.92f, .97f}}},
      {{{.12f, .1f}, {.42f, 0}, {.74f, .07f}, {.82f, .26f}, {.68f, .44f}, {.4f, .48f}},
       {{.4f, .48f}, {.74f, .54f}, {.88f, .74f}, {.74f, .94f}, {.42f, 1}, {.1f, .88f}}},
      {{{.4f, 0}, {.1f, .62f}, {.9f, .58f}}, {{.68f, .28f}, {.64f, 1}}},
      {{{.86f, 0},
        {.24f, .02f},
        {.17f, .44f},
        {.5f, .38f},
        {.82f, .5f},
        {.88f, .73f},
        {.7f, .94f},
        {.4f, 1},
        {.1f, .88f}}},
      {{{.74f, 0},
        {.4f, .18f},
        {.18f, .5f},
        {.14f, .78f},
        {.34f, .98f},
        {.64f, .98f},
        {.84f, .78f},
        {.7f, .56f},
        {.44f, .5f},
        {.18f, .66f}}},
      {{{.08f, .03f}, {.9f, 0}, {.6f, .45f}, {.4f, 1}}},
      {{{.5f, .46f},
        {.2f, .34f},
        {.22f, .1f},
        {.5f, 0},
        {.78f, .1f},
        {.8f, .34f},
        {.5f, .46f},
        {.16f, .64f},
        {.16f, .88f},
        {.5f, 1},
        {.84f, .88f},
        {.84f, .64f},
        {.5f, .46f}}},
      {{{.82f, .28f},
        {.62f, .5f},
        {.32f, .48f},
        {.16f, .26f},
        {.3f, .05f},
        {.6f, 0},
        {.82f, .2f},
        {.82f, .5f},
        {.66f, 1}}},
  }};
  return strokes;
}

/// The random numbers of one image, consumed in order.
class PixelDraws {
 public:
  explicit PixelDraws(Seed seed) {
    const Interval full{0, static_cast<int64_t>(values_.size())};
    stateless_uniform(seed, {full.hi}, std::span(&full, 1), 0.0f, 1.0f, values_.data());
  }

  float between(float lo, float hi) { return lo + (hi - lo) * values_[next_++]; }

 private:
  std::array<float, 64> values_{};
  size_t next_ = 0;
};

/// Random affine map from the unit square to pixels.
class AffineMap {
 public:
  explicit AffineMap(PixelDraws& draws) {
    const float width = draws.between(9, 16);
    const float height = draws.between(15, 20);
    const float angle = draws.between(-0.22f, 0.22f);
    const float slant = draws.between(-0.3f, 0.2f);
    xx_ = std::cos(angle) * width;
    xy_ = (slant * std::cos(angle) - std::sin(angle)) * height;
    yx_ = std::sin(angle) * width;
    yy_ = (slant * std::sin(angle) + std::cos(angle)) * height;
    x0_ = draws.between(12, 15);
    y0_ = draws.between(12, 15);
  }

  Point operator()(Point p) const {
    const float x = p.x - 0.5f;
    const float y = p.y - 0.5f;
    return {x0_ + xx_ * x + xy_ * y, y0_ + yx_ * x + yy_ * y};
  }

 private:
  float xx_, xy_, yx_, yy_, x0_, y0_;
};

float distance(Point p, Point a, Point b) {
  const float dx = b.x - a.x;
  const float dy = b.y - a.y;
  const float length = dx * dx + dy * dy;
  const float along = length > 0 ? ((p.x - a.x) * dx + (p.y - a.y) * dy) / length : 0.0f;
  const float t = std::clamp(along, 0.0f, 1.0f);
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

using Ink = std::array<float, side * side>;

/// Draws one straight segment of a stroke, with an antialiased edge one pixel wide.
void draw_line(Point a, Point b, float radius, Ink& ink) {
  const float reach = radius + 1;
  const auto pixel = [](float v) { return std::clamp<int64_t>(std::lround(v), 0, side - 1); };
  for (int64_t y = pixel(std::min(a.y, b.y) - reach); y <= pixel(std::max(a.y, b.y) + reach); ++y) {
    for (int64_t x = pixel(std::min(a.x, b.x) - reach); x <= pixel(std::max(a.x, b.x) + reach);
         ++x) {
      const Point centre{static_cast<float>(x), static_cast<float>(y)};
      float& value = ink[static_cast<size_t>(y * side + x)];
      value = std::max(value, std::clamp(radius + 0.5f - distance(centre, a, b), 0.0f, 1.0f));
    }
  }
}

void draw_digit(uint8_t digit, PixelDraws& draws, Ink& ink) {
  const AffineMap to_pixels(draws);
  const float radius = draws.between(0.7f, 1.7f);
  const auto wobbled = [&](Point p) {
    const float dx = draws.between(-0.05f, 0.05f);
    const float dy = draws.between(-0.05f, 0.05f);
    return to_pixels({p.x + dx, p.y + dy});
  };
  for (const Stroke& stroke : digit_strokes()[digit]) {
    Point last = wobbled(stroke[0]);
    for (size_t i = 1; i < stroke.size(); ++i) {
      const Point next = wobbled(stroke[i]);
      draw_line(last, next, radius, ink);
      last = next;
    }
  }
}

/// Scales ink to bytes, with some noise in the ink and specks on the background.
void develop(const Ink& ink, Seed seed, float strength, uint8_t* out) {
  const Interval full{0, side * side};
  std::array<float, side * side> noise;
  stateless_uniform(seed, {full.hi}, std::span(&full, 1), 0.0f, 1.0f, noise.data());
  for (size_t i = 0; i < ink.size(); ++i) {
    const float speck = noise[i] > 0.995f ? 0.4f : 0.0f;
    const float value = std::max(speck, ink[i] * (strength - 0.25f * noise[i]));
    out[i] = static_cast<uint8_t>(std::clamp(std::lround(255 * value), 0L, 255L));
  }
}

}  // namespace

LabelledImages synthetic_digits(int64_t n, Seed seed, int64_t first) {
  if (n < 0 || first < 0) {
    throw ConfigError("synthetic digits", "the number of images must not be negative",
                      str(n, " images from number ", first), "pass non-negative numbers");
  }
  LabelledImages digits;
  digits.images = {{n, side, side}, std::vector<uint8_t>(static_cast<size_t>(n * side * side))};
  digits.labels = {{n}, std::vector<uint8_t>(static_cast<size_t>(n))};
  for (int64_t i = 0; i < n; ++i) {
    const Seed own = fold_in(seed, static_cast<uint64_t>(first + i));
    PixelDraws draws(own);
    const auto label = static_cast<uint8_t>(draws.between(0, 10));
    Ink ink{};
    draw_digit(label, draws, ink);
    develop(ink, fold_in(own, 1), draws.between(0.9f, 1.1f),
            digits.images.data.data() + i * side * side);
    digits.labels.data[static_cast<size_t>(i)] = label;
  }
  return digits;
}

}  // namespace tessera::detail
