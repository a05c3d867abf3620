#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// Returns the version of the library in use, such as "0.1.0".
std::string version();

namespace detail {

/// Returns the options of the build in lower case, such as {"gloo", true}, in the order of
/// CMakeLists.txt, where they are called TESSERA_GLOO and so on.
std::vector<std::pair<std::string, bool>> build_options();

/// Returns the compiler and the kind of the build, such as "GCC 12.2.0, Release".
std::string build_description();

}  // namespace detail

}  // namespace tessera
