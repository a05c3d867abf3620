#pragma once

#include <cstdint>
#include <string>

namespace tessera::detail {

/// What the four numbers of a box are.
struct BoxFormat {
  /// Two corners; a corner and the size; the centre and the size.
  enum Kind : uint8_t { corners, corner, center };
  Kind kind = corners;
  bool y_first = false;   ///< whether y comes before x, and height before width
  bool relative = false;  ///< whether numbers are shares of the image's width and height
  bool operator==(const BoxFormat&) const = default;
};

/// Keras' name of a format, in large or small letters. Throws ConfigError for an unknown one.
BoxFormat box_format(const std::string& where, const std::string& name);

}  // namespace tessera::detail
