#pragma once

#include <concepts>
#include <string>

namespace tessera {

/// The index of one axis: an integer, or a slice as a text like Python's, "1:3".
struct AxisItem {
  AxisItem(const char* slice) : text(slice) {}         // NOLINT: reads as data
  AxisItem(const std::string& slice) : text(slice) {}  // NOLINT
  template <std::integral T>
  AxisItem(T index) : text(std::to_string(index)) {}  // NOLINT

  std::string text;
};

}  // namespace tessera
