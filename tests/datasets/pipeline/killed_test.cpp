// Tests a fit on a pipeline that is killed repeatedly and resumes each time.
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <thread>

#include <tessera/tessera.hpp>

#include "tests/datasets/pipeline/numbers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program.hpp"

namespace pipeline_killed_test {

using namespace tessera;

namespace {

constexpr int kills = 50;
constexpr const char* folder_name = "TESSERA_TEST_PIPELINE_FOLDER";

/// Runs four epochs of 22 steps on a pipeline with random maps, a filter, a cache file and threads.
/// Prints a line per step with all digits of its loss.
void fit_in(const std::string& folder) {
  const DataPipeline batches =
      DataPipeline(test::NumberRows(300))
          .cache(folder + "/rows.cache")
          .filter([](const Examples& row) { return row.y[0].item<int64_t>() % 4 != 0; })
          .shuffle()
          .map(
              [](Examples row, Seed seed) {
                const double noise = double(seed.a & 0xffff) / 0xffff;
                row.x[0] = row.x[0] / 1500.0 + noise;
                row.y[0] = row.y[0].reshape({1}) / 150.0 - 1;
                return row;
              },
              {.threads = 2})
          .batch(10, {.drop_remainder = true})
          .prefetch(3);
  const Sequential model({Dense(4, {.kernel_initializer = GlorotUniform({.seed = 1})}), Dense(1)});
  model.compile({.optimizer = Adam(0.01), .loss = "mse"});
  const LambdaCallback print({.on_train_batch_end = [&](int64_t, const Logs&) {
    std::printf("step %lld %.17g\n", static_cast<long long>(model->optimizer()->steps()),
                model->history().steps.back());
    std::fflush(stdout);
  }});
  model.fit(batches,
            {.epochs = 4,
             .verbose = 0,
             .callbacks = {print, BackupAndRestore(folder + "/backup", {.save_freq = 1})}});
  std::puts("done");
}

/// Returns the steps and losses in the complete lines that a run printed.
std::vector<std::pair<int, std::string>> printed(const std::string& out) {
  std::vector<std::pair<int, std::string>> losses;
  std::istringstream text(out);
  std::string line;
  while (std::getline(text, line) && !text.eof()) {
    std::istringstream words(line);
    std::string word, loss;
    int step = 0;
    if (words >> word >> step >> loss && word == "step") losses.emplace_back(step, loss);
  }
  return losses;
}

}  // namespace

TEST_CASE("the fit on a pipeline that is killed", "[.]") {
  const char* folder = std::getenv(folder_name);
  REQUIRE(folder != nullptr);
  fit_in(folder);
}

TEST_CASE("a fit on a pipeline that is killed fifty times sees an uninterrupted fit's batches") {
  const std::vector<std::string> arguments = {"the fit on a pipeline that is killed"};
  const test::TempFolder whole_folder, folder;
  const auto whole =
      test::run_program("/proc/self/exe", arguments, {{folder_name, whole_folder.path().string()}});
  const auto list = printed(whole.out);
  const std::map<int, std::string> expected(list.begin(), list.end());
  std::map<int, std::string> losses;
  REQUIRE(expected.size() == 88);

  const std::vector<std::pair<std::string, std::string>> environment = {
      {folder_name, folder.path().string()}};
  int killed = 0;
  bool ended = false;
  for (int run = 0; run < 4 * kills && !ended; ++run) {
    const auto out = folder / "out";
    const pid_t pid =
        test::start_program("/proc/self/exe", arguments, environment, out, folder / "err");
    // Kills some runs while they start or write the cache, others shortly after one or two steps.
    const auto begin = std::chrono::steady_clock::now();
    const size_t steps = killed % 10 == 9 ? 0 : 1 + size_t(killed) % 2;
    const auto patience = std::chrono::seconds(killed < kills ? 60 : 600);
    int status = 0;
    while (std::chrono::steady_clock::now() - begin < patience) {
      if (::waitpid(pid, &status, WNOHANG) == pid) {
        ended = true;
        break;
      }
      if (killed < kills && printed(test::read_file(out)).size() >= steps) break;
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    if (!ended) {
      std::this_thread::sleep_for(std::chrono::microseconds(137 * (killed % 23)));
      ::kill(pid, SIGKILL);
      test::wait_program(pid);
      ++killed;
    } else {
      CAPTURE(test::read_file(folder / "err"));
      CHECK(WIFEXITED(status));
      CHECK(WEXITSTATUS(status) == 0);
    }
    for (const auto& [step, loss] : printed(test::read_file(out))) {
      CAPTURE(run, step);
      CHECK(losses.emplace(step, loss).first->second == loss);
    }
  }
  CHECK(ended);
  CHECK(killed == kills);
  CHECK(losses == expected);
}

}  // namespace pipeline_killed_test
