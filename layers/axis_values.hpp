#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tessera {

/// A number for each spatial axis, or one for all of them (Keras' int or tuple).
struct AxisValues {
  // Not of a std::initializer_list: g++ takes {.any_name = 2} for one.
  AxisValues(int64_t all = 0) : values{all} {}  // NOLINT: reads as data
  AxisValues(int64_t first, int64_t second) : values{first, second} {}
  AxisValues(int64_t first, int64_t second, int64_t third) : values{first, second, third} {}
  AxisValues(std::vector<int64_t> each) : values(std::move(each)) {}  // NOLINT
  std::vector<int64_t> values;
};

}  // namespace tessera
