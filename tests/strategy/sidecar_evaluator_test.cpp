#include <tessera/framework/strategy/sidecar_evaluator.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <ATen/ATen.h>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/io/format/checkpoint_folder.hpp>
#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/warnings.hpp"

namespace sidecar_evaluator_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::strategy;
using namespace tessera::test;

namespace {

Sequential small(double kernel) {
  const Sequential model({Input({1}), Dense(1, {.kernel_initializer = Constant(kernel)})});
  model.compile({.optimizer = SGD(0.1), .loss = "mse"});
  return model;
}

TensorDataset ones() { return TensorDataset({.x = {at::ones({4, 1})}, .y = {at::ones({4, 1})}}); }

/// Saves a checkpoint whose loss is (kernel - 1)^2.
void save(const std::string& folder, int64_t step, double kernel) {
  Checkpoint(small(kernel)).save(folder + str("/", checkpoint_name(step)));
}

SidecarEvaluatorOptions watching(const std::string& folder) {
  return {.checkpoint_dir = folder,
          .data = ones(),
          .poll = std::chrono::milliseconds(5),
          .verbose = 0,
          .over = [] { return true; }};
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("sidecar evaluator: evaluates the newest checkpoint once; later runs append to its log") {
  const TempFolder temp;
  const std::string folder = temp.path().string() + "/run", csv = folder + "/evaluations.csv";
  // The folder does not exist yet.
  CHECK(SidecarEvaluator(small(9), watching(folder)).start() == 0);
  save(folder, 10, 3);
  save(folder, 20, 2);
  CHECK(SidecarEvaluator(small(9), watching(folder)).start() == 1);
  CHECK(lines_of(csv) ==
        std::vector<std::string>{"step,checkpoint,loss\r", "20,step-000020,1.0\r"});
  CHECK(SidecarEvaluator(small(9), watching(folder)).start() == 0);
  // A line that a killed process left incomplete.
  std::ofstream(csv, std::ios::app) << "30,step-0";
  save(folder, 30, 1);
  SidecarEvaluatorOptions options = watching(folder);
  options.log_dir = temp.path().string() + "/logs";
  CHECK(SidecarEvaluator(small(9), options).start() == 1);
  CHECK(lines_of(csv).size() == 3);
  CHECK(lines_of(csv)[2] == "30,step-000030,0.0\r");
  std::string events;
  for (const auto& file : std::filesystem::directory_iterator(options.log_dir + "/validation")) {
    events = read_file(file.path().string());
  }
  CHECK(events.find("evaluation_loss_vs_iterations") != std::string::npos);
}

TEST_CASE("sidecar evaluator: follows training until it has evaluated enough checkpoints") {
  const TempFolder temp;
  std::thread trainer([&] {
    for (int64_t step = 1; step <= 3; ++step) {
      save(temp.path().string(), step, static_cast<double>(step));
      const std::string csv = temp.path().string() + "/evaluations.csv";
      for (int waits = 0; waits < 2000; ++waits) {
        if (exists(csv) && lines_of(csv).size() > static_cast<size_t>(step)) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
  });
  SidecarEvaluatorOptions options = watching(temp.path().string());
  options.over = {};
  options.max_evaluations = 3;
  CHECK(SidecarEvaluator(small(9), options).start() == 3);
  trainer.join();
  CHECK(lines_of(temp.path().string() + "/evaluations.csv").size() == 4);
}

TEST_CASE("sidecar evaluator: damaged checkpoints warn once, garbage is skipped") {
  const TempFolder temp;
  save(temp.path().string(), 5, 2);
  save(temp.path().string(), 6, 2);
  std::filesystem::create_directories(temp.path().string() + "/step-000099");
  std::ofstream(temp.path().string() + "/step-garbage") << "x";
  const std::string torn = temp.path().string() + "/step-000006";
  for (const auto& file : std::filesystem::recursive_directory_iterator(torn)) {
    if (file.path().extension() == ".json" || !file.is_regular_file()) continue;
    std::filesystem::resize_file(file.path(), file.file_size() / 2);
  }
  const Warnings warnings;
  int64_t asked = 0;
  SidecarEvaluatorOptions options = watching(temp.path().string());
  options.over = [&] { return ++asked > 4; };
  CHECK(SidecarEvaluator(small(9), options).start() == 1);
  CHECK(warnings.lines() == 1);
  CHECK(warnings.text().find("step-000006") != std::string::npos);
  CHECK(lines_of(temp.path().string() + "/evaluations.csv")[1] == "5,step-000005,1.0\r");
}

TEST_CASE("sidecar evaluator: checkpoints may be pruned while it reads") {
  const TempFolder temp;
  std::thread trainer([&] {
    for (int64_t step = 1; step <= 40; ++step) {
      save(temp.path().string(), step, 2);
      if (step > 1) remove_checkpoint(temp.path().string() + "/" + checkpoint_name(step - 1));
    }
  });
  SidecarEvaluatorOptions options = watching(temp.path().string());
  options.poll = std::chrono::milliseconds(1);
  options.over = [&] { return exists(temp.path().string() + "/" + checkpoint_name(40)); };
  const Warnings warnings;
  CHECK(SidecarEvaluator(small(9), options).start() >= 1);
  trainer.join();
  CHECK(warnings.text() == "");
  CHECK(lines_of(temp.path().string() + "/evaluations.csv").back().starts_with("40,"));
}

TEST_CASE("sidecar evaluator: a signal ends the wait") {
  const TempFolder temp;
  SidecarEvaluatorOptions options = watching(temp.path().string());
  options.over = [asked = 0]() mutable {
    if (++asked == 3) std::raise(SIGTERM);
    return asked > 200;
  };
  CHECK_THROWS_AS(SidecarEvaluator(small(9), options).start(), Interrupted);
  clear_stop_signal();
}

TEST_CASE("sidecar evaluator: refuses invalid options, another model and another kind of log") {
  const TempFolder temp;
  CHECK_THROWS_AS(SidecarEvaluator(small(1), {.checkpoint_dir = "", .data = ones()}), ConfigError);
  CHECK_THROWS_AS(SidecarEvaluator(small(1), {.checkpoint_dir = temp.path().string()}),
                  ConfigError);
  SidecarEvaluatorOptions options = watching(temp.path().string());
  options.max_evaluations = 0;
  CHECK_THROWS_AS(SidecarEvaluator(small(1), options), ConfigError);
  save(temp.path().string(), 1, 1);
  const Sequential other({Input({1}), Dense(2), Dense(1)});
  other.compile({.optimizer = SGD(0.1), .loss = "mse"});
  CHECK_THROWS_AS(SidecarEvaluator(other, watching(temp.path().string())).start(),
                  CheckpointMismatch);
  std::ofstream(temp.path().string() + "/evaluations.csv") << "name,age\n";
  CHECK_THROWS_AS(SidecarEvaluator(small(1), watching(temp.path().string())).start(), FileError);
}

}  // namespace sidecar_evaluator_test
