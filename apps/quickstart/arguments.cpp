// Lets quickstart's main() stay as short as in README.md: the linker makes the program begin here
// (--wrap=main), where arguments are refused and errors become one line, as in other programs.

#include "apps/common/app_options.hpp"
#include "apps/common/run_app.hpp"

// NOLINTBEGIN: the names that the linker asks for.
extern "C" int __real_main(int argc, char** argv);

extern "C" int __wrap_main(int argc, char** argv) {
  using namespace tessera;
  return app::run_app(argc, argv, [](int count, char** words) {
    app::AppOptions options = app::AppOptions::bare(
        "quickstart", "Trains a first model of handwritten digits on eight virtual devices.");
    return options.parse(count, words) ? __real_main(count, words) : 0;
  });
}
// NOLINTEND
