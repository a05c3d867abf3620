// Processes of an elastic run that are killed, stopped, asked to leave, and restarted while they
// train: the bits of a run in which nothing of that happens.
#include <csignal>
#include <map>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include <tessera/framework/base/internal/strings.hpp>

#include "tests/processes/ranks.hpp"
#include "tests/support/catch.hpp"

namespace elastic_test {

using namespace tessera;
using namespace tessera::test;
using namespace std::chrono_literals;

namespace {

using Words = std::vector<std::string>;

/// The newest step of a process of the launcher, by its number there.
struct Progress {
  pid_t pid = 0;
  int64_t step = 0;
};

/// `launch --elastic` with elastic_program.
class Launched : public ProcessGroup {
 public:
  Launched(int count, const std::string& limits, const Words& program, const Words& options = {})
      : ProcessGroup(1) {
    Words words = {"-n", std::to_string(count), "--elastic", limits};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", app_path("elastic_program").string()});
    words.insert(words.end(), program.begin(), program.end());
    start(0, app_path("launch"), words, {});
  }

  std::map<int, Progress> progress() const {
    static const std::regex line("\\[([0-9]+)\\] pid ([0-9]+) step ([0-9]+)");
    std::map<int, Progress> all;
    std::istringstream lines(text(0));
    std::smatch match;
    for (std::string each; std::getline(lines, each);) {
      if (!std::regex_match(each, match, line)) continue;
      all[std::stoi(match[1])] = {std::stoi(match[2]), std::stoll(match[3])};
    }
    return all;
  }
  /// Waits until a process has done a step, and returns its pid; 0 if it never does.
  pid_t wait_for_step(int number, int64_t step) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (std::chrono::steady_clock::now() < end && runs(0)) {
      const auto all = progress();
      const auto found = all.find(number);
      if (found != all.end() && found->second.step >= step) return found->second.pid;
      std::this_thread::sleep_for(2ms);
    }
    return 0;
  }
  /// Sends a signal to a process once it has done a step, and `delay` later.
  void signal_at(int number, int64_t step, int signal, std::chrono::microseconds delay = 0us) {
    const pid_t pid = wait_for_step(number, step);
    CAPTURE(number, step, text(0));
    REQUIRE(pid > 0);
    std::this_thread::sleep_for(delay);
    REQUIRE(::kill(pid, signal) == 0);
  }
  /// The number of lines of the output that contain a text.
  size_t lines_with(const std::string& part) const {
    size_t count = 0;
    std::istringstream lines(text(0));
    for (std::string each; std::getline(lines, each);) count += each.find(part) != each.npos;
    return count;
  }
  RankEnd end() { return wait(2min)[0]; }
};

/// The hashes that processes printed, each once.
std::set<std::string> bits_in(const std::string& text) {
  static const std::regex line("bits [0-9a-f]+ of [0-9]+ steps");
  std::set<std::string> all;
  for (std::sregex_iterator each(text.begin(), text.end(), line), end; each != end; ++each) {
    all.insert(each->str());
  }
  return all;
}

/// A training of 42 steps in two epochs, with snapshots after 5 steps each.
Words training(const std::string& layouts, const std::string& mesh, const Words& more = {}) {
  Words words = {"layouts=" + layouts, "mesh=" + mesh, "batches=20"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words slowly(Words words, const Words& more = {}) {
  words.insert(words.end(), {"pause=10", "snapshot=5"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The hash of an undisturbed training in one process.
std::string undisturbed(const Words& training) {
  Processes process(1, app_path("elastic_program"), training);
  const RankEnd end = process.wait(1min)[0];
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  const auto bits = bits_in(end.out);
  REQUIRE(bits.size() == 1);
  return *bits.begin();
}

/// Checks that the processes that are left ended well with these bits, and their number, if given.
void check_end(Launched& run, const std::string& bits, std::optional<size_t> left = {}) {
  const RankEnd end = run.end();
  CAPTURE(end.out, end.err);
  CHECK(end.exit_code == 0);
  CHECK(bits_in(end.out) == std::set<std::string>{bits});
  if (left) CHECK(run.lines_with("bits ") == *left);
}

}  // namespace

TEST_CASE("survivors of killed processes, the first one too, go on with the same bits") {
  const auto& [layouts, mesh] = GENERATE(
      values<std::pair<std::string, std::string>>({{"data", "batch=8"}, {"fsdp", "batch=8"}}));
  CAPTURE(layouts);
  const Words words = training(layouts, mesh);
  const std::string bits = undisturbed(words);
  Launched run(4, "2:4", slowly(words));
  const pid_t last = run.wait_for_step(3, 7);
  run.signal_at(0, 7, SIGKILL);
  run.signal_at(2, 16, SIGKILL, 6ms);
  CHECK(run.wait_for_step(3, 20) == last);
  check_end(run, bits, 2);
  // The killed processes were two generations' losses, each of which repeats at most 5 steps.
  CHECK(run.lines_with("[elastic] generation") == 2);
}

TEST_CASE("processes that are restarted or asked to leave are no loss") {
  const Words words = training("fsdp", "batch=4,model=2", {"epochs=4"});
  const std::string bits = undisturbed(words);
  const TempFolder backup;
  // Longer than it takes to start a process.
  Launched run(4, "2:4", slowly(words, {"pause=60", "backup=" + backup.path().string(), "every=4"}),
               {"--max-restarts", "1"});
  run.signal_at(1, 6, SIGKILL);
  // It is back.
  REQUIRE(run.writes(0, "now 4 processes", 60s));
  const int64_t step = run.progress()[0].step;
  run.signal_at(2, step + 1, SIGTERM);
  REQUIRE(run.writes(0, "the others go on without this process", 60s));
  // The launcher may start it again.
  check_end(run, bits);
  // Only the loss made a step be done again.
  CHECK(run.lines_with("done again") <= 1);
}

TEST_CASE("fewer processes than the minimum save, and end with the reason") {
  const Words words = training("data", "batch=4");
  const TempFolder backup;
  // Nothing but the end saves.
  const Words saves = {"backup=" + backup.path().string(), "every=1000"};
  Launched run(2, "2:2", slowly(words, saves));
  run.signal_at(0, 12, SIGKILL);
  const RankEnd end = run.end();
  CAPTURE(end.out, end.err);
  CHECK(end.exit_code != 0);
  CHECK(run.lines_with("[elastic] the run needs at least 2 processes") > 0);
  CHECK(bits_in(end.out).empty());

  Processes process(1, app_path("elastic_program"), slowly(words, saves));
  const RankEnd last = process.wait(1min)[0];
  CAPTURE(last.out, last.err);
  CHECK(bits_in(last.out) == std::set<std::string>{undisturbed(words)});
  std::smatch first;
  REQUIRE(std::regex_search(last.out, first, std::regex("step ([0-9]+)")));
  // After the snapshot of the tenth step, or a later one.
  CHECK(std::stoi(first[1]) > 10);
}

TEST_CASE("a value that nobody is left with is read from disk, or ends the run") {
  const Words words = training("fsdp", "batch=4");
  // Two neighbours: the second has the copies of the first.
  const auto kill_two = [](Launched& run) {
    run.signal_at(0, 12, SIGKILL);
    run.signal_at(1, 12, SIGKILL);
    run.signal_at(2, 12, SIGKILL);
  };
  SECTION("with a checkpoint") {
    const TempFolder backup;
    Launched run(4, "1:4", slowly(words, {"backup=" + backup.path().string(), "every=4"}));
    kill_two(run);
    check_end(run, undisturbed(words), 1);
    CHECK(run.lines_with("from a checkpoint on disk; ") == 1);
  }
  SECTION("without one") {
    Launched run(4, "1:4", slowly(words));
    kill_two(run);
    const RankEnd end = run.end();
    CAPTURE(end.out, end.err);
    CHECK(end.exit_code != 0);
    CHECK(run.lines_with("have the state of training, or a checkpoint has it") == 1);
  }
}

TEST_CASE("a stopped process is expelled, and told so", "[nightly]") {
  const Words words = training("data", "batch=8");
  Launched run(3, "2:3", slowly(words, {"pause=300"}));
  const pid_t stopped = run.wait_for_step(0, 6);
  REQUIRE(stopped > 0);
  REQUIRE(::kill(stopped, SIGSTOP) == 0);
  REQUIRE(run.writes(0, "now 2 processes", 60s));
  REQUIRE(::kill(stopped, SIGCONT) == 0);
  REQUIRE(run.writes(0, "every member answers the register", 60s));
  check_end(run, undisturbed(words), 2);
}

TEST_CASE("many changes leave no thread, file or shared memory behind", "[nightly]") {
  Launched run(4, "2:4", slowly(training("fsdp", "batch=4", {"epochs=1000"}), {"pause=20"}),
               {"--max-restarts", "4"});
  const pid_t survivor = run.wait_for_step(0, 6);
  REQUIRE(survivor > 0);
  const auto held = [&](const char* what) {
    const auto folder = std::filesystem::path("/proc") / std::to_string(survivor) / what;
    return std::distance(std::filesystem::directory_iterator(folder), {});
  };
  // Where the kernel lists mappings of files; those of shared memory have no name in a folder.
  const auto threads = held("task"), files = held("fd"), mappings = held("map_files");
  for (int round = 0; round < 12; ++round) {
    const int number = 1 + round % 3;
    const pid_t killed = run.progress()[number].pid;
    CAPTURE(round, number, killed);
    REQUIRE(::kill(killed, SIGKILL) == 0);
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (run.progress()[number].pid == killed && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(10ms);
    }
    REQUIRE(run.progress()[number].pid != killed);
  }
  REQUIRE(run.wait_for_step(0, run.progress()[0].step + 10) == survivor);
  // 24 changes. The first rank has a thread, and a connection with each other process, more.
  CHECK(held("task") <= threads + 4);
  CHECK(held("fd") <= files + 10);
  CHECK(held("map_files") <= mappings + 10);
}

TEST_CASE("kills at random moments change no bit", "[nightly]") {
  const auto& [layouts, mesh] =
      GENERATE(values<std::pair<std::string, std::string>>({{"data", "batch=8"},
                                                            {"fsdp", "batch=8"},
                                                            {"fsdp", "batch=4,model=2"},
                                                            {"tensor", "batch=2,model=4"}}));
  const Words words = training(layouts, mesh, {"epochs=6"});
  const std::string bits = undisturbed(words);
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>{}(layouts + mesh)));
  for (int trial = 0; trial < 8; ++trial) {
    Launched run(4, "2:4", slowly(words), {"--max-restarts", "3"});
    for (int kill = 0; kill < 3; ++kill) {
      const int number = static_cast<int>(random() % 4);
      const int64_t step = 1 + 30 * kill + static_cast<int64_t>(random() % 25);
      const auto delay = std::chrono::microseconds(random() % 30000);
      CAPTURE(layouts, mesh, trial, kill, number, step, delay.count());
      run.signal_at(number, step, SIGKILL, delay);
    }
    CAPTURE(layouts, mesh, trial);
    check_end(run, bits);
  }
}

}  // namespace elastic_test
