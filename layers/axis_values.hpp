#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tessera {

/// One integer per spatial axis, or one for all axes (Keras' int or tuple).
struct AxisValues {
  // No std::initializer_list constructor: g++ would match {.any_name = 2} to it.
  AxisValues(int64_t all = 0) : values{all} {}  // NOLINT: reads as data
  AxisValues(int64_t first, int64_t second) : values{first, second} {}
  AxisValues(int64_t first, int64_t second, int64_t third) : values{first, second, third} {}
  AxisValues(std::vector<int64_t> each) : values(std::move(each)) {}  // NOLINT
  std::vector<int64_t> values;
};

}  // namespace tessera
