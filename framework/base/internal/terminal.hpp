#pragma once

namespace tessera::detail {

/// Returns whether the user wants no colours anywhere: $NO_COLOR is set and not empty, or $TERM is
/// "dumb".
bool colors_refused();

/// Returns whether text written to the file descriptor may have colours: it is a terminal of a
/// known kind ($TERM), and colours are not refused.
bool shows_colors(int descriptor);

}  // namespace tessera::detail
