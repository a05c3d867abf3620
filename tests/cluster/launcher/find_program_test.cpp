#include <tessera/framework/cluster/launcher/launcher.hpp>

#include <filesystem>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace find_program_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("programs are found as paths, as applications or in PATH", "[launcher]") {
  const test::TempFolder folder;
  test::write_file(folder / "imdb", "#!/bin/sh\n");
  std::filesystem::permissions(folder / "imdb", std::filesystem::perms::owner_all);
  test::write_file(folder / "plain", "");
  const std::string here = folder.path().string();
  CHECK(find_program("imdb", here) == here + "/imdb");
  CHECK(find_program(here + "/imdb", "/") == here + "/imdb");
  CHECK(find_program("sh", here).substr(find_program("sh", here).size() - 3) == "/sh");
  CHECK_THROWS_WITH(find_program("imdbb", here),
                    "[launch] the program is a path, an application or a program in PATH. "
                    "Received: \"imdbb\". To fix: write \"imdb\".");
  CHECK_THROWS_AS(find_program("plain", here), ConfigError);
  CHECK_THROWS_AS(find_program("", here), ConfigError);
  CHECK_THROWS_WITH(find_program("./no", here),
                    "[launch] the program must be an executable file. Received: \"./no\". To fix: "
                    "check the path.");
}

}  // namespace find_program_test
