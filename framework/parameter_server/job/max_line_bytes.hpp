#pragma once

#include <cstddef>

namespace tessera::detail {

/// Maximum length of an error line sent to another task: it is sent in the reply's metadata, whose
/// size is limited.
constexpr size_t max_line_bytes = 1000;

}  // namespace tessera::detail
