#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"

namespace error_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("an error is one line of where, rule, received value and fix") {
  const LayoutError error("hidden/kernel", "layout names mesh dimension \"modle\"",
                          "mesh batch=4, model=2", "write \"model\"");
  CHECK(std::string(error.what()) ==
        "[hidden/kernel] layout names mesh dimension \"modle\". Received: mesh batch=4, model=2. "
        "To fix: write \"model\".");
}

TEST_CASE("empty parts of an error are left out and full stops are not doubled") {
  CHECK(std::string(StateError("", "not built", "", "").what()) == "not built.");
  CHECK(std::string(FileError("a.gz", "cut short.", "", "fetch it again.").what()) ==
        "[a.gz] cut short. To fix: fetch it again.");
  CHECK(std::string(ShapeError("Dense ", "one input", "", "").what()) == "[Dense] one input.");
}

TEST_CASE("every error is an Error and a std::runtime_error") {
  CHECK_THROWS_AS(throw ShapeError("a", "b", "c", "d"), Error);
  CHECK_THROWS_AS(throw CommError("a", "b", "c", "d"), std::runtime_error);
}

TEST_CASE("str concatenates its arguments") {
  CHECK(str("axis ", -1, " of ", 3, '.') == "axis -1 of 3.");
  CHECK(str("") == "");
}

}  // namespace error_test
