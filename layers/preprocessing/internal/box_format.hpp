#pragma once

#include <cstdint>
#include <string>

namespace tessera::detail {

/// Meaning of the four numbers of a box.
struct BoxFormat {
  /// Two corners; one corner and the size; the centre and the size.
  enum Kind : uint8_t { corners, corner, center };
  Kind kind = corners;
  bool y_first = false;   ///< whether y comes before x, and height before width
  bool relative = false;  ///< whether numbers are relative to the image's width and height
  bool operator==(const BoxFormat&) const = default;
};

/// Parses Keras' name of a format, in any case. Throws ConfigError for an unknown one.
BoxFormat box_format(const std::string& where, const std::string& name);

}  // namespace tessera::detail
