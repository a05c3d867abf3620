#include <tessera/framework/base/random.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/philox.hpp>

namespace tessera {

using namespace detail;

namespace {

using namespace philox;

float unit_float(uint32_t word) {
  return std::bit_cast<float>((word & 0x7fffffu) | 0x3f800000u) - 1.0f;
}

/// Returns two normal values from two words, with TensorFlow's operations and rounding order.
std::array<float, 2> normal_pair(uint32_t a, uint32_t b) {
  const float u = std::max(unit_float(a), 1e-7f);
  const auto angle =
      static_cast<float>(2.0 * std::numbers::pi * static_cast<double>(unit_float(b)));
  const float radius = std::sqrt(-2.0f * std::log(u));
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}

/// Returns group `g` of four truncated normal values. Groups use sub-streams 256 blocks apart.
std::array<float, 4> truncated_group(const Stream& stream, uint64_t g) {
  std::array<float, 4> group{};
  size_t filled = 0;
  for (uint64_t block = 0; filled < 4; ++block) {
    const uint64_t lower = (g << 8) + block;
    const uint64_t carry = lower < block ? 1 : 0;
    const Words w = stream.block(lower, (g >> 56) + carry);
    for (size_t i = 0; i < 4 && filled < 4; i += 2) {
      for (float value : normal_pair(w[i], w[i + 1])) {
        if (std::abs(value) < 2.0f && filled < 4) group[filled++] = value;
      }
    }
  }
  return group;
}

void check_slice(const Shape& global, std::span<const Interval> slice) {
  bool fits = slice.size() == global.size();
  for (size_t i = 0; fits && i < slice.size(); ++i) {
    fits = 0 <= slice[i].lo && slice[i].lo <= slice[i].hi && slice[i].hi <= global[i];
  }
  if (fits) return;
  std::string received;
  for (Interval interval : slice) received += str("[", interval.lo, ", ", interval.hi, ") ");
  throw ShapeError("random draw", str("the slice must be inside shape ", to_string(global)),
                   received, "pass one interval per axis of the global shape");
}

/// Writes elements [first, first + count) of the flattened draw; `groups(g, n, to)` writes elements
/// [4g, 4(g + n)).
template <class T, class Groups>
void fill_run(uint64_t first, uint64_t count, T* out, const Groups& groups) {
  const auto copy_partial_group = [&](uint64_t size) {
    std::array<T, 4> group;
    groups(first / 4, 1, group.data());
    out = std::copy_n(group.begin() + first % 4, size, out);
    first += size;
    count -= size;
  };
  if (first % 4 != 0) copy_partial_group(std::min(4 - first % 4, count));
  const uint64_t full_groups = count / 4;
  groups(first / 4, full_groups, out);
  first += 4 * full_groups;
  count -= 4 * full_groups;
  out += 4 * full_groups;
  if (count > 0) copy_partial_group(count);
}

/// Returns the `groups` function of fill_run(): `make(words, n, to)` turns n words of the stream, a
/// multiple of 4, into n values.
template <class Make>
auto groups_of(const Stream& stream, const Make& make) {
  return [&stream, make](uint64_t group, uint64_t count, auto* out) {
    for (; count >= lanes; count -= lanes, group += lanes, out += 4 * lanes) {
      make(stream.blocks(group).data(), 4 * lanes, out);
    }
    for (; count > 0; --count, ++group, out += 4) make(stream.block(group).data(), 4, out);
  };
}

/// Calls fill_run for every contiguous run of the slice, in row-major order.
template <class T, class Groups>
void fill_slice(const Shape& global, std::span<const Interval> slice, T* out,
                const Groups& groups) {
  check_slice(global, slice);
  if (std::any_of(slice.begin(), slice.end(), [](Interval interval) { return interval.empty(); }))
    return;
  size_t outer = global.size();
  uint64_t run = 1;
  bool full = true;
  while (outer > 0 && full) {
    --outer;
    run *= static_cast<uint64_t>(slice[outer].size());
    full = slice[outer].size() == global[outer];
  }
  std::vector<int64_t> index;
  for (Interval interval : slice) index.push_back(interval.lo);
  while (true) {
    uint64_t first = 0;
    for (size_t i = 0; i < global.size(); ++i) {
      first = first * static_cast<uint64_t>(global[i]) + static_cast<uint64_t>(index[i]);
    }
    fill_run(first, run, out, groups);
    out += run;
    size_t axis = outer;
    while (axis > 0 && ++index[axis - 1] == slice[axis - 1].hi) {
      index[axis - 1] = slice[axis - 1].lo;
      --axis;
    }
    if (axis == 0) return;
  }
}

constexpr uint32_t permutation_rounds = 10;

/// Returns the shifts, modulo `modulus`, of each of `count` numbers in every second round of a
/// permutation from round `first` on; round-major.
std::vector<uint32_t> shifts(const Words& key, uint32_t first, uint64_t count, uint64_t modulus) {
  std::vector<uint32_t> all;
  all.reserve(permutation_rounds / 2 * count);
  for (uint32_t round = first; round < permutation_rounds; round += 2) {
    for (uint64_t x = 0; x < count; ++x) {
      const Words w = generate({low(x), high(x), key[2] ^ round, key[3]}, {key[0], key[1]});
      all.push_back(static_cast<uint32_t>(join(w[0], w[1]) % modulus));
    }
  }
  return all;
}

}  // namespace

uint64_t detail::stable_hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

Seed detail::fold_in(Seed seed, uint64_t data) {
  const Words m = generate(words_of(seed), {low(data), high(data)});
  return {static_cast<int64_t>(join(m[0], m[1])), static_cast<int64_t>(join(m[2], m[3]))};
}

void detail::stateless_bits(Seed seed, const Shape& global, std::span<const Interval> slice,
                            uint32_t* out) {
  const Stream stream(seed);
  const auto make = [](const uint32_t* words, size_t n, uint32_t* to) {
    std::copy_n(words, n, to);
  };
  fill_slice(global, slice, out, groups_of(stream, make));
}

void detail::stateless_uniform(Seed seed, const Shape& global, std::span<const Interval> slice,
                               float lo, float hi, float* out) {
  const Stream stream(seed);
  const auto make = [lo, range = hi - lo](const uint32_t* words, size_t n, float* to) {
    for (size_t i = 0; i < n; ++i) to[i] = unit_float(words[i]) * range + lo;
  };
  fill_slice(global, slice, out, groups_of(stream, make));
}

void detail::stateless_normal(Seed seed, const Shape& global, std::span<const Interval> slice,
                              float mean, float stddev, float* out) {
  const Stream stream(seed);
  const auto make = [mean, stddev](const uint32_t* words, size_t n, float* to) {
    for (size_t i = 0; i < n; i += 2) {
      const auto [z0, z1] = normal_pair(words[i], words[i + 1]);
      to[i] = z0 * stddev + mean;
      to[i + 1] = z1 * stddev + mean;
    }
  };
  fill_slice(global, slice, out, groups_of(stream, make));
}

void detail::stateless_truncated_normal(Seed seed, const Shape& global,
                                        std::span<const Interval> slice, float mean, float stddev,
                                        float* out) {
  const Stream stream(seed);
  fill_slice(global, slice, out, [&](uint64_t group, uint64_t count, float* to) {
    for (; count > 0; --count, ++group, to += 4) {
      const std::array<float, 4> values = truncated_group(stream, group);
      for (size_t i = 0; i < 4; ++i) to[i] = values[i] * stddev + mean;
    }
  });
}

Permutation::Permutation(int64_t n, Seed seed) : n_(n) {
  if (n < 0) {
    throw ConfigError("permutation", "the size must not be negative", str(n),
                      "pass the number of examples");
  }
  if (n == 0) return;
  rows_ = static_cast<uint64_t>(std::ceil(std::sqrt(static_cast<double>(n))));
  columns_ = (static_cast<uint64_t>(n) + rows_ - 1) / rows_;
  // Mixed once, so that seeds that differ in few bits share no round function.
  const Words key = words_of(fold_in(seed, stable_hash("permutation")));
  row_shifts_ = shifts(key, 0, columns_, rows_);
  column_shifts_ = shifts(key, 1, rows_, columns_);
}

uint64_t Permutation::shuffled_once(uint64_t value) const {
  // A Feistel network over Z_rows x Z_columns: each half is shifted by a random function of the
  // other, which keeps the map a bijection whatever the function.
  uint64_t row = value / columns_;
  uint64_t column = value % columns_;
  const uint32_t* row_shift = row_shifts_.data();
  const uint32_t* column_shift = column_shifts_.data();
  for (uint32_t round = 0; round < permutation_rounds; round += 2) {
    row += row_shift[column];
    row -= row < rows_ ? 0 : rows_;
    column += column_shift[row];
    column -= column < columns_ ? 0 : columns_;
    row_shift += columns_;
    column_shift += rows_;
  }
  return row * columns_ + column;
}

int64_t Permutation::operator()(int64_t i) const {
  if (i < 0 || i >= n_) {
    throw ShapeError("permutation", str("the index must be in [0, ", n_, ")"), str(i),
                     "ask for an example the dataset has");
  }
  // Cycle walking: the grid has fewer than `rows` positions beyond n, so this ends soon.
  auto value = static_cast<uint64_t>(i);
  do {
    value = shuffled_once(value);
  } while (value >= static_cast<uint64_t>(n_));
  return static_cast<int64_t>(value);
}

}  // namespace tessera
