// Processes of an elastic run that are killed, stopped, asked to leave, and restarted while they
// train: the bits of a run in which nothing of that happens.
#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

#include "tests/processes/ranks.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/real_etcd.hpp"
#include "tests/support/seed_of_run.hpp"
#include "tests/support/skip.hpp"

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

/// Processes of an elastic run that finds its members in etcd, without a launcher.
class OverEtcd : public ProcessGroup {
 public:
  OverEtcd(int count, const std::string& url, const std::string& limits, Words program)
      : ProcessGroup(count), program_(std::move(program)) {
    variables_ = {{"TESSERA_MEMBERS", url},
                  {"TESSERA_ELASTIC", limits},
                  {"TESSERA_JOB", "a job"},
                  {"TESSERA_SECRET", "a secret that all of the members share"}};
    for (int number = 0; number < count; ++number) join(number);
  }
  /// Starts a process, again if it has ended.
  void join(int number) { start(number, app_path("elastic_program"), program_, variables_); }

 private:
  Words program_;
  Variables variables_;
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

/// The longest time from a step to the next one with other processes in between, in seconds.
double longest_recovery(const std::string& text) {
  static const std::regex line("back after ([0-9.]+) s");
  double longest = 0;
  for (std::sregex_iterator each(text.begin(), text.end(), line), end; each != end; ++each) {
    longest = std::max(longest, std::stod((*each)[1]));
  }
  return longest;
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

TEST_CASE(
    "processes killed in a snapshot, while it is sent and while the others meet lose no bit") {
  struct Kill {
    const char *at, *step, *network, *layouts;
    Words more;
  };
  // In the second snapshot, before and while its copies are sent; between two updates, whose
  // gradients are not reduced yet; and in the meeting after the loss of the first process. There,
  // all have all values: copies of sharded ones may not have arrived before the first loss.
  const auto& [at, step, network, layouts, more] = GENERATE(
      Kill{"snapshot", "5", "mlp", "fsdp", {}}, Kill{"sent", "10", "mlp", "fsdp", {"accumulate=3"}},
      Kill{"change", "1", "cnn", "data", {}}, Kill{"restored", "1", "cnn", "data", {}});
  CAPTURE(at, network, layouts);
  const bool meets = std::string(at) == "change" || std::string(at) == "restored";
  Words words = training(layouts, "batch=4", {str("network=", network)});
  words.insert(words.end(), more.begin(), more.end());
  const std::string bits = undisturbed(words);
  const Words fault = {"fault=kill", str("at=", at), str("step=", step), "rank=2"};
  Launched run(4, "1:4", slowly(words, fault));
  if (meets) run.signal_at(0, 8, SIGKILL);
  check_end(run, bits, meets ? 2 : 3);
  CHECK(run.lines_with("killed by signal 9") > 0);
}

TEST_CASE(
    "a process killed while a checkpoint is written changes no bit, and leaves the one before") {
  const Words words = training("fsdp", "batch=4");
  const std::string bits = undisturbed(words);
  const TempFolder backup;
  Words saves = slowly(words, {"backup=" + backup.path().string(), "every=4"});
  // The state is asked for in snapshots, too: after twelve steps by the checkpoint only.
  Words faulty = saves;
  faulty.insert(faulty.end(), {"fault=kill", "at=snapshot", "step=12", "rank=1",
                               str("delay=", GENERATE(0, 1500))});
  Launched run(3, "1:3", faulty);
  check_end(run, bits, 2);
  CHECK(run.lines_with("[elastic] generation 2") == 1);
  // Nothing half written is in the way.
  Processes process(1, app_path("elastic_program"), saves);
  const RankEnd end = process.wait(1min)[0];
  CAPTURE(end.out, end.err);
  CHECK(bits_in(end.out) == std::set<std::string>{bits});
  CHECK(line_count(end.out) < 10);
}

TEST_CASE("a second fit goes on without a killed process, and with one that was restarted") {
  const Words words = training("fsdp", "batch=4", {"batches=10", "epochs=1", "fits=2"});
  const std::string bits = undisturbed(words);
  const bool restarts = GENERATE(false, true);
  CAPTURE(restarts);
  const Words awaits = restarts ? Words{"await=18"} : Words();
  Launched run(3, "2:3", slowly(words, awaits), {"--max-restarts", restarts ? "1" : "0"});
  // The third step of the second fit.
  run.signal_at(1, 14, SIGKILL);
  check_end(run, bits, restarts ? 3 : 2);
  const std::string missed = "[elastic] fit number 1 of the run was complete";
  CHECK(run.lines_with(missed) == (restarts ? 1U : 0U));
}

TEST_CASE("a process that joins reads no checkpoint, and the run saves the same ones") {
  const TempFolder folder;
  const auto saving = [&](const std::string& name, const Words& more = {}) {
    Words words = training("data", "batch=4", {"checkpoints=" + (folder / name).string()});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  // Both runs start from the weights of this one.
  undisturbed(saving("one"));
  std::filesystem::copy(folder / "one", folder / "other", std::filesystem::copy_options::recursive);
  const std::string bits = undisturbed(saving("one"));
  Launched run(3, "2:3", slowly(saving("other", {"await=16"})), {"--max-restarts", "1"});
  run.signal_at(0, 9, SIGKILL);
  check_end(run, bits, 3);
  const auto names_in = [&](const std::string& name) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder / name)) {
      names.insert(entry.path().filename());
    }
    return names;
  };
  CHECK(names_in("one") == names_in("other"));
}

TEST_CASE("fit goes on over etcd without a killed process, and with one that joins") {
  if (!has_etcd()) return skip("etcd is not installed (Debian: etcd-server)");
  const RealEtcd etcd;
  const Words words = training("fsdp", "batch=4");
  const std::string bits = undisturbed(words);
  // It begins with two of them.
  OverEtcd run(3, etcd.url(), "2:3", slowly(words, {"await=16"}));
  const bool began = run.writes(0, "step 8\n", 60s);
  CAPTURE(run.text(0));
  REQUIRE(began);
  run.signal(0, SIGKILL);
  run.wait(60s, {0});
  run.join(0);
  const std::vector<RankEnd>& ends = run.wait(2min);
  for (const RankEnd& end : ends) {
    CAPTURE(end.out, end.err);
    CHECK(end.exit_code == 0);
    CHECK(bits_in(end.out) == std::set<std::string>{bits});
  }
  CHECK(ends.size() == 3);
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
  const uint64_t seed = seed_of_run();
  INFO("TESSERA_TEST_SEED=" << seed);
  const auto& [layouts, mesh] =
      GENERATE(values<std::pair<std::string, std::string>>({{"data", "batch=8"},
                                                            {"fsdp", "batch=8"},
                                                            {"fsdp", "batch=4,model=2"},
                                                            {"tensor", "batch=2,model=4"}}));
  const Words words = training(layouts, mesh, {"epochs=6"});
  const std::string bits = undisturbed(words);
  std::mt19937_64 random(seed);
  double longest = 0;
  for (int trial = 0; trial < 8; ++trial) {
    Launched run(4, "2:4", slowly(words), {"--max-restarts", "3"});
    // Different ones, since one that was killed may not be back in time.
    std::vector<int> victims = {0, 1, 2, 3};
    std::shuffle(victims.begin(), victims.end(), random);
    for (int kill = 0; kill < 3; ++kill) {
      const int number = victims[static_cast<size_t>(kill)];
      const int64_t step = 1 + 30 * kill + static_cast<int64_t>(random() % 25);
      const auto delay = std::chrono::microseconds(random() % 30000);
      CAPTURE(layouts, mesh, trial, kill, number, step, delay.count());
      run.signal_at(number, step, SIGKILL, delay);
    }
    CAPTURE(layouts, mesh, trial);
    check_end(run, bits);
    longest = std::max(longest, longest_recovery(run.text(0)));
  }
  // A figure to read: a limit would depend on what else the machine does.
  WARN(layouts << " on " << mesh << ": 24 kills, at most " << longest
               << " s from a step to the next one");
  CHECK(longest > 0);
}

}  // namespace elastic_test
