#pragma once

#include <exception>
#include <new>
#include <string_view>

namespace tessera::detail {

/// Whether an error says that memory ran out, of the host (std::bad_alloc, or ATen's) or a GPU.
inline bool is_out_of_memory(const std::exception& error) {
  const std::string_view text = error.what();
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
         text.find("can't allocate memory") != std::string_view::npos ||
         text.find("out of memory") != std::string_view::npos;
}

}  // namespace tessera::detail
