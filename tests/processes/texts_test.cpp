#include <string>

#include "tests/processes/ranks.hpp"
#include "tests/support/catch.hpp"

namespace texts_test {

using namespace tessera::test;

TEST_CASE("generated texts are the same in all processes of a mesh, from replayed calls") {
  const auto texts = [](int count, const std::string& mesh) {
    return run_ranks_program(count, {"texts=1", "mesh=" + mesh});
  };
  const std::string alone = texts(1, "batch=1").at(0).out;
  // The prompts, of up to 3 tokens, are calls on 2 and 1; then come 11 tokens. Of these twelve
  // calls on one token, the first is eager and the second is captured; those of the beams have
  // other rows.
  CHECK_THAT(alone, Catch::Contains("replayed 10\n") && Catch::Contains("replayed 20\n"));
  for (const char* const mesh : {"batch=2", "model=2"}) {
    CAPTURE(mesh);
    for (const RankEnd& end : texts(2, mesh)) {
      CAPTURE(end.err);
      CHECK(end.exit_code == 0);
      CHECK(end.out == alone);
    }
  }
}

}  // namespace texts_test
