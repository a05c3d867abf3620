// Catch2 itself without main(), as the programs that tests start have their own.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

int run_catch(int argc, char** argv) {
  Catch::Session session;
  // A test case without assertions is a failure, as is a selection of no test case.
  using Catch::WarnAbout;
  session.configData().warnings =
      static_cast<WarnAbout::What>(WarnAbout::NoAssertions | WarnAbout::NoTests);
  return session.run(argc, argv);
}
