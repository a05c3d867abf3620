#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tessera {

/// A number for each spatial axis, or one for all of them (Keras' int or tuple).
struct AxisValues {
  AxisValues(int64_t all = 0) : values{all} {}                        // NOLINT: reads as data
  AxisValues(std::initializer_list<int64_t> each) : values(each) {}   // NOLINT
  AxisValues(std::vector<int64_t> each) : values(std::move(each)) {}  // NOLINT
  std::vector<int64_t> values;
};

}  // namespace tessera
