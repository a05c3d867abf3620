#pragma once

#include <string>

namespace tessera::detail {

/// Returns the folder of libtorch's libraries, with a trailing slash.
std::string torch_folder();

}  // namespace tessera::detail
