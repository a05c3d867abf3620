#pragma once

#include <exception>
#include <new>
#include <string_view>

namespace tessera::detail {

/// Whether an error says that the host's memory ran out: std::bad_alloc, or ATen's.
inline bool is_out_of_memory(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
         std::string_view(error.what()).find("can't allocate memory") != std::string_view::npos;
}

}  // namespace tessera::detail
