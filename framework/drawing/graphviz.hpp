#pragma once

#include <string>

namespace tessera::detail {

/// Renders the DOT file at `path` to `image_path` with Graphviz' program dot, found in PATH; the
/// extension of `image_path`, .svg or .png, is the format. Returns an empty text, or the reason why
/// there is no new picture. Throws FileError if the picture cannot be written.
std::string draw_dot_file(const std::string& path, const std::string& image_path);

}  // namespace tessera::detail
