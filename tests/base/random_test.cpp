#include <tessera/framework/base/random.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace random_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

nlohmann::json golden() {
  std::ifstream in(test::golden_path("stateless_rng.json"));
  return nlohmann::json::parse(in);
}

std::vector<Interval> full_slice(const Shape& shape) {
  std::vector<Interval> slice;
  for (int64_t extent : shape) slice.push_back({0, extent});
  return slice;
}

template <class T, class Draw>
std::vector<T> draw(const Shape& shape, const std::vector<Interval>& slice, Draw&& function) {
  int64_t count = 1;
  for (Interval part : slice) count *= part.size();
  std::vector<T> out(static_cast<size_t>(count));
  function(shape, slice, out.data());
  return out;
}

std::vector<float> uniform(Seed seed, const Shape& shape, const std::vector<Interval>& slice) {
  return draw<float>(shape, slice, [&](const auto& s, const auto& part, float* out) {
    stateless_uniform(seed, s, part, 0.0f, 1.0f, out);
  });
}

std::vector<float> normal(Seed seed, const Shape& shape, const std::vector<Interval>& slice) {
  return draw<float>(shape, slice, [&](const auto& s, const auto& part, float* out) {
    stateless_normal(seed, s, part, 0.0f, 1.0f, out);
  });
}

std::vector<float> truncated(Seed seed, const Shape& shape, const std::vector<Interval>& slice) {
  return draw<float>(shape, slice, [&](const auto& s, const auto& part, float* out) {
    stateless_truncated_normal(seed, s, part, 0.0f, 1.0f, out);
  });
}

std::vector<uint32_t> bits(Seed seed, const Shape& shape, const std::vector<Interval>& slice) {
  return draw<uint32_t>(shape, slice, [&](const auto& s, const auto& part, uint32_t* out) {
    stateless_bits(seed, s, part, out);
  });
}

/// Returns the elements of a row-major tensor that `slice` selects.
template <class T>
std::vector<T> cut(const std::vector<T>& all, const Shape& shape,
                   const std::vector<Interval>& slice) {
  std::vector<T> out;
  for (size_t flat = 0; flat < all.size(); ++flat) {
    auto rest = static_cast<int64_t>(flat);
    bool inside = true;
    for (size_t axis = shape.size(); axis-- > 0;) {
      const int64_t index = rest % shape[axis];
      rest /= shape[axis];
      inside = inside && slice[axis].lo <= index && index < slice[axis].hi;
    }
    if (inside) out.push_back(all[flat]);
  }
  return out;
}

}  // namespace

TEST_CASE("draws equal TensorFlow's stateless generator") {
  const auto file = golden();
  REQUIRE(file["cases"].size() == 18);
  for (const auto& entry : file["cases"]) {
    const Seed seed{entry["seed"][0].get<int64_t>(), entry["seed"][1].get<int64_t>()};
    const auto shape = entry["shape"].get<Shape>();
    CAPTURE(seed.a, seed.b, to_string(shape));
    CHECK(bits(seed, shape, full_slice(shape)) == entry["bits"].get<std::vector<uint32_t>>());
    CHECK(uniform(seed, shape, full_slice(shape)) == entry["uniform"].get<std::vector<float>>());
    CHECK(normal(seed, shape, full_slice(shape)) == entry["normal"].get<std::vector<float>>());
    const auto expected = entry["truncated_normal"].get<std::vector<float>>();
    const auto actual = truncated(seed, shape, full_slice(shape));
    REQUIRE(actual.size() == expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      CAPTURE(i);
      CHECK(std::abs(actual[i] - expected[i]) <= 2e-6f);
    }
  }
}

TEST_CASE("the 784 x 700 draw has TensorFlow's checksums") {
  const auto entry = golden()["big"];
  const Shape shape = entry["shape"].get<Shape>();
  const Seed seed{entry["seed"][0].get<int64_t>(), entry["seed"][1].get<int64_t>()};
  const auto values = uniform(seed, shape, full_slice(shape));
  CHECK(std::accumulate(values.begin(), values.end(), 0.0) ==
        Approx(entry["sum"].get<double>()).epsilon(1e-12));
  const auto check = [&](size_t first, const std::vector<float>& expected) {
    for (size_t i = 0; i < expected.size(); ++i) {
      // The file holds seven digits.
      CHECK(std::abs(values[first + i] - expected[i]) < 1e-7f);
    }
  };
  for (const auto& [row, expected] : entry["rows"].items()) {
    CAPTURE(row);
    check(std::stoul(row) * 700, expected.get<std::vector<float>>());
  }
  const auto last = entry["last"].get<std::vector<float>>();
  check(values.size() - last.size(), last);
}

TEST_CASE("drawing a slice equals slicing the full draw") {
  const Seed seed{5, -9};
  const std::vector<Shape> shapes{{},      {1},       {37},         {5, 7},
                                  {8, 12}, {3, 4, 5}, {2, 3, 1, 7}, {3, 700}};
  uint64_t step = 0;
  for (const Shape& shape : shapes) {
    const auto all = full_slice(shape);
    const auto all_bits = bits(seed, shape, all);
    const auto all_uniform = uniform(seed, shape, all);
    const auto all_normal = normal(seed, shape, all);
    const auto all_truncated = truncated(seed, shape, all);
    for (int trial = 0; trial < 60; ++trial) {
      std::vector<Interval> slice;
      for (int64_t extent : shape) {
        const Seed random = fold_in(seed, step++);
        const int64_t lo = (random.a >> 1 & INT32_MAX) % (extent + 1);
        slice.push_back({lo, lo + (random.b >> 1 & INT32_MAX) % (extent - lo + 1)});
      }
      CHECK(bits(seed, shape, slice) == cut(all_bits, shape, slice));
      CHECK(uniform(seed, shape, slice) == cut(all_uniform, shape, slice));
      CHECK(normal(seed, shape, slice) == cut(all_normal, shape, slice));
      CHECK(truncated(seed, shape, slice) == cut(all_truncated, shape, slice));
    }
  }
}

TEST_CASE("limits, mean and standard deviation scale the draw") {
  const Shape shape{20000};
  std::vector<float> values(20000);
  stateless_uniform({1, 2}, shape, full_slice(shape), -3.0f, 5.0f, values.data());
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  CHECK(*low >= -3.0f);
  CHECK(*low < -2.99f);
  CHECK(*high < 5.0f);
  CHECK(*high > 4.99f);
  const auto unit = normal({1, 2}, shape, full_slice(shape));
  stateless_normal({1, 2}, shape, full_slice(shape), 2.0f, 0.5f, values.data());
  CHECK(values[17] == unit[17] * 0.5f + 2.0f);
  stateless_truncated_normal({1, 2}, shape, full_slice(shape), 1.0f, 0.25f, values.data());
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  CHECK(*least > 0.5f);
  CHECK(*most < 1.5f);
  CHECK(std::accumulate(values.begin(), values.end(), 0.0) / 20000 == Approx(1.0).margin(0.01));
}

TEST_CASE("a slice outside its tensor is a ShapeError") {
  float out = 0;
  const std::vector<Interval> beyond{{0, 3}};
  const std::vector<Interval> too_many{{0, 1}, {0, 1}};
  const std::vector<Interval> backwards{{1, 0}};
  CHECK_THROWS_AS(stateless_uniform({}, {2}, beyond, 0, 1, &out), ShapeError);
  CHECK_THROWS_AS(stateless_uniform({}, {2}, too_many, 0, 1, &out), ShapeError);
  CHECK_THROWS_AS(stateless_uniform({}, {2}, backwards, 0, 1, &out), ShapeError);
}

TEST_CASE("element indices may exceed 32 bits") {
  const Shape shape{int64_t{1} << 40, 3};
  const std::vector<Interval> end{{(int64_t{1} << 40) - 1, int64_t{1} << 40}, {0, 3}};
  const std::vector<Interval> start{{0, 1}, {0, 3}};
  CHECK(bits({1, 2}, shape, end) != bits({1, 2}, shape, start));
  const std::vector<Interval> part{{(int64_t{1} << 40) - 1, int64_t{1} << 40}, {1, 3}};
  const auto row = truncated({1, 2}, shape, end);
  CHECK(truncated({1, 2}, shape, part) == std::vector<float>{row[1], row[2]});
}

TEST_CASE("hashes and folded seeds are fixed and distinct") {
  CHECK(stable_hash("") == 0xcbf29ce484222325u);
  CHECK(stable_hash("a") == 0xaf63dc4c8601ec8cu);
  CHECK(stable_hash("foobar") == 0x85944171f73967e8u);
  const Seed seed{22, 23};
  CHECK(fold_in(seed, 1) == fold_in(seed, 1));
  CHECK_FALSE(fold_in(seed, 1) == fold_in(seed, 2));
  CHECK_FALSE(fold_in(seed, 1) == fold_in({23, 22}, 1));
  CHECK_FALSE(fold_in(seed, uint64_t{1} << 32) == fold_in(seed, 0));
}

TEST_CASE("a permutation is a bijection of its range") {
  std::vector<int64_t> sizes{100, 127, 128, 129, 1000, 4096, 5000, 60000, 65537};
  for (int64_t n = 0; n <= 70; ++n) sizes.push_back(n);
  for (int64_t n : sizes) {
    const Permutation permutation(n, {3, n});
    std::vector<bool> seen(static_cast<size_t>(n), false);
    bool in_range = true;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t image = permutation(i);
      in_range = in_range && 0 <= image && image < n;
      if (in_range) seen[static_cast<size_t>(image)] = true;
    }
    CAPTURE(n);
    CHECK(in_range);
    CHECK(std::count(seen.begin(), seen.end(), true) == n);
  }
}

TEST_CASE("permutations are stable across versions, so runs can resume inside one") {
  const auto images = [](int64_t n) {
    const Permutation permutation(n, {4, 2});
    std::vector<int64_t> first;
    for (int64_t i = 0; i < std::min<int64_t>(n, 5); ++i) first.push_back(permutation(i));
    return first;
  };
  CHECK(images(1) == std::vector<int64_t>{0});
  CHECK(images(2) == std::vector<int64_t>{1, 0});
  CHECK(images(10) == std::vector<int64_t>{8, 6, 0, 9, 2});
  CHECK(images(97) == std::vector<int64_t>{53, 79, 52, 61, 33});
  CHECK(images(60000) == std::vector<int64_t>{22587, 36121, 15189, 17240, 19993});
  CHECK(images(1000003) == std::vector<int64_t>{253412, 928282, 708356, 793837, 929726});
}

TEST_CASE("permutations of different seeds are independent and well mixed") {
  const int64_t n = 60000;
  const Permutation first(n, fold_in({7, 0}, 1));
  const Permutation second(n, fold_in({7, 0}, 2));
  int64_t fixed = 0;
  int64_t equal = 0;
  int64_t neighbours = 0;
  double distance = 0;
  for (int64_t i = 0; i < n; ++i) {
    fixed += first(i) == i;
    equal += first(i) == second(i);
    neighbours += i + 1 < n && std::abs(first(i + 1) - first(i)) == 1;
    distance += std::abs(static_cast<double>(first(i) - i));
  }
  CHECK(fixed <= 10);
  CHECK(equal <= 10);
  CHECK(neighbours <= 16);
  CHECK(distance / n == Approx(n / 3.0).epsilon(0.01));
}

TEST_CASE("every position of a small permutation is equally likely") {
  for (int64_t n : {2, 3, 5, 6, 10}) {
    constexpr int trials = 4000;
    std::vector<double> counts(static_cast<size_t>(n * n), 0.0);
    for (int trial = 0; trial < trials; ++trial) {
      const Permutation permutation(n, {trial, 0});
      for (int64_t i = 0; i < n; ++i) counts[static_cast<size_t>(i * n + permutation(i))] += 1;
    }
    const double expected = trials / static_cast<double>(n);
    double chi_square = 0;
    for (double count : counts) chi_square += (count - expected) * (count - expected) / expected;
    const auto freedom = static_cast<double>((n - 1) * (n - 1));
    CAPTURE(n);
    CHECK(chi_square < freedom + 5 * std::sqrt(2 * freedom));
  }
}

TEST_CASE("a permutation refuses indices outside its range") {
  CHECK_THROWS_AS(Permutation(-1, {}), ConfigError);
  CHECK_THROWS_AS(Permutation(0, {})(0), ShapeError);
  CHECK_THROWS_AS(Permutation(3, {})(3), ShapeError);
  CHECK_THROWS_AS(Permutation(3, {})(-1), ShapeError);
}

}  // namespace random_test
