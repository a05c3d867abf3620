#include <tessera/framework/training/callbacks/internal/python_repr.hpp>

#include <charconv>
#include <cmath>

namespace tessera::detail {

std::string python_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const double magnitude = std::abs(value);
  const bool plain = value == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  char text[400];
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(text, text + sizeof text, value, format).ptr;
  const std::string number(text, end);
  return plain && number.find('.') == std::string::npos ? number + ".0" : number;
}

}  // namespace tessera::detail
