#include <tessera/framework/base/internal/terminal.hpp>

#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "tests/support/catch.hpp"

namespace terminal_test {

using namespace tessera::detail;

namespace {

/// Sets or clears an environment variable until the end of a scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) {
    if (value) {
      ::setenv(name_, value, 1);
    } else {
      ::unsetenv(name_);
    }
  }

  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("text has colours on a terminal only, unless the user refuses them") {
  int ours = -1, terminal = -1;
  REQUIRE(::openpty(&ours, &terminal, nullptr, nullptr, nullptr) == 0);
  const int file = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  const Variable term("TERM", "xterm-256color"), wish("NO_COLOR", nullptr);
  CHECK(shows_colors(terminal));
  CHECK_FALSE(shows_colors(file));
  CHECK_FALSE(colors_refused());
  {
    // Empty is as good as unset, as no-color.org says.
    const Variable empty("NO_COLOR", "");
    CHECK(shows_colors(terminal));
  }
  {
    const Variable refused("NO_COLOR", "1");
    CHECK_FALSE(shows_colors(terminal));
    CHECK(colors_refused());
  }
  {
    const Variable dumb("TERM", "dumb");
    CHECK_FALSE(shows_colors(terminal));
    CHECK(colors_refused());
  }
  {
    const Variable unknown("TERM", nullptr);
    CHECK_FALSE(shows_colors(terminal));
    CHECK_FALSE(colors_refused());
  }
  ::close(file);
  ::close(terminal);
  ::close(ours);
}

}  // namespace terminal_test
