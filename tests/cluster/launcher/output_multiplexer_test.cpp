#include "tests/cluster/launcher/launcher_run.hpp"

#include "tests/support/catch.hpp"

namespace output_multiplexer_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

TEST_CASE("every process knows its rank, and every line shows it", "[launcher]") {
  const Run result =
      run("echo rank $RANK of $WORLD_SIZE, local $LOCAL_RANK at $MASTER_ADDR; echo error $RANK >&2;"
          "[ $MASTER_PORT -gt 1023 ] && [ ${#TESSERA_JOB} = 16 ] && [ $OMP_NUM_THREADS -ge 1 ] &&"
          "[ -z \"$TF_CONFIG$TESSERA_RESTART\" ]",
          {.processes = 3});
  CHECK(result.code == 0);
  CHECK(sorted(result.out) ==
        "[0] rank 0 of 3, local 0 at 127.0.0.1\n"
        "[1] rank 1 of 3, local 1 at 127.0.0.1\n"
        "[2] rank 2 of 3, local 2 at 127.0.0.1\n");
  CHECK(sorted(result.err) == "[0] error 0\n[1] error 1\n[2] error 2\n");
}

TEST_CASE("all processes get one port and one job", "[launcher]") {
  const Run result = run("echo $MASTER_PORT $TESSERA_JOB", {.processes = 2});
  const size_t end = result.out.find('\n');
  CHECK(result.out.substr(3, end - 3) == result.out.substr(end + 4, end - 3));
}

TEST_CASE("an unterminated line, a progress bar and empty lines are printed", "[launcher]") {
  CHECK(run("printf '\\n\\nlast'").out == "[0] \n[0] \n[0] last\n");
  CHECK(run("printf '10%%\\r50%%\\r100%%\\nx\\r\\ny\\r'").out == "[0] 100%\n[0] x\n[0] y\n");
}

TEST_CASE("lines of many processes are not interleaved", "[launcher]") {
  const Run result = run(
      "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo \"line $i of rank $RANK$RANK$RANK end\"; "
      "done",
      {.processes = 4});
  CHECK(result.code == 0);
  std::istringstream in(result.out);
  std::vector<int> next(4, 1);
  int wrong = 0;
  for (std::string line; std::getline(in, line);) {
    const int rank = line.at(1) - '0';
    const std::string r = std::to_string(rank);
    wrong += line != str("[", rank, "] line ", next.at(static_cast<size_t>(rank))++, " of rank ", r,
                         r, r, " end");
  }
  CHECK(wrong == 0);
  CHECK(next == std::vector<int>(4, 2001));
}

TEST_CASE("lines longer than a pipe's buffer are printed", "[launcher]") {
  const Run result = run("head -c 300000 /dev/zero | tr '\\0' $RANK; echo", {.processes = 2});
  CHECK(result.out.size() == 2 * (300000 + 5));
  CHECK(result.out.substr(result.out.find('\n') + 1).size() == 300005);
}

TEST_CASE("a blocked reader holds up only the printing", "[launcher]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  Launcher launcher("yes", {.processes = 2}, ends[1]);
  std::this_thread::sleep_for(300ms);
  kill(launcher.pid(), SIGTERM);
  const Run result = launcher.finish();
  CHECK(result.code == 128 + SIGTERM);
  CHECK(result.time < 5s);
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("processes continue after the reader has closed", "[launcher]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  close(ends[0]);
  Launcher launcher("echo one; sleep 0.1; echo two; exit 6", {}, ends[1]);
  CHECK(launcher.finish().code == 6);
  close(ends[1]);
}

TEST_CASE("output that processes wrote before they died is printed", "[launcher]") {
  const Run result = run("head -c 50000 /dev/zero | tr '\\0' x; kill -9 $$");
  CHECK(result.out.size() == 50005);
}

}  // namespace output_multiplexer_test
