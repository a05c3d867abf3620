#include <signal.h>

#include <algorithm>

#include "tests/apps/review_export.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/program.hpp"
#include "tests/support/served_program.hpp"

namespace serve_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

TEST_CASE("serve answers for several models until SIGTERM") {
  const test::TempFolder folder;
  test::export_reviews(folder / "a");
  test::export_reviews(folder / "b");
  test::export_reviews(folder / "b");
  const std::string a = folder / "a", b = folder / "b";
  test::ServedProgram served("serve", {"one=" + a, "two=" + b});
  REQUIRE(served.port() > 0);
  CHECK_THAT(served.first_line(), Contains("serving version 1 of one, version 2 of two on http:"));
  for (const char* name : {"one", "two"}) {
    const std::string path = std::string("/v1/models/") + name + ":predict";
    CHECK(test::http_post(served.port(), path, R"({"instances": ["good"]})").status == 200);
  }
  CHECK(test::http_get(served.port(), "/v1/models/three").status == 404);
  served.signal(SIGTERM);
  CHECK(served.wait() == 0);
}

TEST_CASE("serve --help lists its options") {
  const test::ProgramRun run = test::run_program(test::app_path("serve"), {"--help"});
  CHECK(run.exit_code == 0);
  for (const char* word : {"NAME=FOLDER", "--batch-window", "--threads", "--token-file"}) {
    CHECK_THAT(run.out, Contains(word));
  }
}

TEST_CASE("serve reports errors in one line") {
  const test::TempFolder folder;
  const auto error = [&](const std::vector<std::string>& words) {
    const test::ProgramRun run = test::run_program(test::app_path("serve"), words);
    CHECK(run.exit_code == 1);
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    return run.err;
  };
  CHECK_THAT(error({}), Contains("no model") && Contains("see serve --help"));
  for (const char* word : {"exports", "digits=", "exports/digits"}) {
    CHECK_THAT(error({word}), Contains("NAME=FOLDER") && Contains(word) &&
                                  Contains("write for example digits=exports/digits"));
  }
  CHECK_THAT(error({"a/b=folder"}), Contains("name must have letters") && Contains("a/b"));
  CHECK_THAT(error({"=folder"}), Contains("name must have letters"));
  const std::string none = folder / "none";
  CHECK_THAT(error({"a=" + none}), Contains("none"));
  CHECK_THAT(error({"a=" + none, "a=" + none}), Contains("must differ"));
}

}  // namespace serve_test
