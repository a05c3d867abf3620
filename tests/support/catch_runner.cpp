// Catch2 itself, apart from main(): the programs that tests start have their own.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

int run_catch(int argc, char** argv) { return Catch::Session().run(argc, argv); }
