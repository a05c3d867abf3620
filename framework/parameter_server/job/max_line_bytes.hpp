#pragma once

#include <cstddef>

namespace tessera::detail {

/// What a task tells another of an error is one line of at most so many bytes: it travels as a
/// field of the answer's head, which is limited.
constexpr size_t max_line_bytes = 1000;

}  // namespace tessera::detail
