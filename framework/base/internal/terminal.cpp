#include <tessera/framework/base/internal/terminal.hpp>

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace tessera::detail {

namespace {

std::string_view environment_text(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

}  // namespace

bool colors_refused() {
  return !environment_text("NO_COLOR").empty() || environment_text("TERM") == "dumb";
}

bool shows_colors(int descriptor) {
  return ::isatty(descriptor) == 1 && !environment_text("TERM").empty() && !colors_refused();
}

}  // namespace tessera::detail
