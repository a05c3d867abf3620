#include <tessera/framework/base/version.hpp>

#include <sstream>

namespace tessera {

// CMake defines these three macros for this file alone.
std::string version() { return TESSERA_VERSION; }

std::vector<std::pair<std::string, bool>> detail::build_options() {
  std::vector<std::pair<std::string, bool>> options;
  std::istringstream texts(TESSERA_BUILD_OPTIONS);  // "gloo=ON grpc=OFF"
  for (std::string text; texts >> text;) {
    const size_t equal = text.find('=');
    options.emplace_back(text.substr(0, equal), text.substr(equal + 1) == "ON");
  }
  return options;
}

std::string detail::build_description() {
#ifdef __clang__
  return "Clang " __clang_version__ ", " TESSERA_BUILD_TYPE;
#else
  return "GCC " __VERSION__ ", " TESSERA_BUILD_TYPE;
#endif
}

}  // namespace tessera
