#include <tessera/framework/io/format/hdf5_program.hpp>

#include <fcntl.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <tessera/framework/base/error.hpp>

#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"

namespace hdf5_program_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace fs = std::filesystem;

// Run by the next test in a folder without the helper program.
TEST_CASE("without the helper program no HDF5 file is opened", "[.without_program]") {
  const FileDescriptor file = open_descriptor("/proc/self/exe", O_RDONLY);
  CHECK(test::error_line([&] { Hdf5Program(Hdf5Program::Work::read, file, {}, "x.h5"); }) ==
        "[HDF5] the program tessera-hdf5 is installed beside this one. Received: none. To fix: "
        "install it, "
        "or build with libhdf5-dev and libseccomp-dev installed.");
}

// Run by the next test in a folder where the helper program ends as without its libraries.
TEST_CASE("a helper program without its libraries is not told as a fault of the file",
          "[.without_libraries]") {
  for (const auto work : {Hdf5Program::Work::read, Hdf5Program::Work::write}) {
    const FileDescriptor file = open_descriptor("/proc/self/exe", O_RDONLY);
    Hdf5Program program(work, file, {}, "x.h5");
    const std::string line = test::error_line([&] { program.answer(); });
    CHECK_THAT(line,
               Contains("[HDF5] the program tessera-hdf5 can be started. Received: exit "
                        "code 127, a library is missing. To fix: install libseccomp2; \"ldd "));
    CHECK_THAT(line, Contains("/bin/tessera-hdf5\" names what is missing."));
    CHECK_THAT(line, !Contains("x.h5"));
  }
}

namespace {

/// Runs test cases by a copy of this program in the folder, beside which others can be placed.
std::string run_copy(const test::TempFolder& folder, const std::string& cases) {
  fs::create_directories(folder / "bin");
  const std::string here = folder / "bin/io_format_test";
  fs::copy_file("/proc/self/exe", here);
  const std::string out = folder / "out";
  CHECK(std::system((here + " '" + cases + "' > " + out + " 2>&1").c_str()) == 0);
  return test::read_file(out);
}

}  // namespace

TEST_CASE("if the helper program is missing, the error says what to install") {
  const test::TempFolder folder;
  CHECK_THAT(run_copy(folder, "[.without_program]"),
             Contains("All tests passed (2 assertions in 1 test case)"));
}

TEST_CASE("if the helper program's libraries are missing, the error says what to install") {
  const test::TempFolder folder;
  const std::string program = folder / "bin/tessera-hdf5";
  fs::create_directories(folder / "bin");
  std::ofstream(program) << "#!/bin/sh\nexit 127\n";
  fs::permissions(program, fs::perms::owner_all);
  CHECK_THAT(run_copy(folder, "[.without_libraries]"),
             Contains("All tests passed (8 assertions in 1 test case)"));
}

TEST_CASE("the helper program started by hand only prints its purpose") {
  const test::TempFolder folder;
  const auto run = [&](const std::string& words) {
    const std::string program = test::app_path("tessera-hdf5");
    const int status = std::system((program + " " + words + " > " + (folder / "out").string() +
                                    " 2> " + (folder / "err").string())
                                       .c_str());
    return WEXITSTATUS(status);
  };
  CHECK(run("--help") == 0);
  CHECK_THAT(test::read_file(folder / "out"), Contains("Usage: tessera-hdf5 read|write "));
  for (const char* words : {"", "read", "open 3 0 1", "read 3 0", "read 3 0 1 2"}) {
    CAPTURE(words);
    CHECK(run(words) == 2);
    CHECK_THAT(test::read_file(folder / "err"), Contains("Usage: tessera-hdf5 read|write"));
    CHECK(test::read_file(folder / "out").empty());
  }
}

}  // namespace hdf5_program_test
