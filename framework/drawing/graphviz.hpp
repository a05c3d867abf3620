#pragma once

#include <string>

namespace tessera::detail {

/// Draws the DOT file at `path` as `picture` with Graphviz' program dot, which is looked for in
/// PATH; the picture's ending, .svg or .png, is its format. Returns an empty text, or the reason
/// why there is no new picture. Throws FileError if the picture cannot be written.
std::string draw_dot_file(const std::string& path, const std::string& picture);

}  // namespace tessera::detail
