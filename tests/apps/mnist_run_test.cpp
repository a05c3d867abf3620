#include <tessera/framework/base/json.hpp>

#include <filesystem>
#include <regex>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/program.hpp"
#include "tests/support/skip.hpp"

namespace mnist_run_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

using Words = std::vector<std::string>;
using Variables = std::vector<std::pair<std::string, std::string>>;

test::ProgramRun mnist(const Words& words, const Variables& environment = {}) {
  const test::ProgramRun run = test::run_program(test::app_path("mnist"), words, environment);
  CHECK(run.err == "");
  CHECK(run.exit_code == 0);
  return run;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> list;
  size_t from = 0;
  for (size_t end; (end = text.find('\n', from)) != std::string::npos; from = end + 1) {
    list.push_back(text.substr(from, end - from));
  }
  return list;
}

}  // namespace

TEST_CASE("mnist without files announces synthetic digits and records them in the history") {
  const test::TempFolder folder;
  const std::string history = folder / "h.json";
  const test::ProgramRun run =
      mnist({"--train-size", "256", "--test-size", "64", "--epochs", "2", "--history", history},
            {{"TESSERA_DATA", ""}, {"XDG_CACHE_HOME", folder.path()}});
  const std::vector<std::string> text = lines(run.out);
  REQUIRE(text.size() >= 4);
  CHECK_THAT(text[0], Contains("mnist (synthetic)"));
  CHECK_THAT(text[1], Contains("mesh batch=8"));
  CHECK_THAT(text.back(), Contains("(mnist (synthetic))") && Contains("2 epochs"));
  CHECK(run.out.find_first_of("\x1b\b\r") == std::string::npos);
  const Json json = read_json_file(history);
  CHECK(json.at("data") == "mnist (synthetic)");
  CHECK(json.at("steps").size() == 4);
  for (const char* name : {"loss", "accuracy", "val_loss", "val_accuracy"}) {
    CHECK(json.at("history").at(name).size() == 2);
  }
}

TEST_CASE("mnist: the command line overrides the configuration, which overrides the defaults") {
  const test::TempFolder folder;
  test::write_mnist(folder / "data", 40, 20);
  const std::string history = folder / "h.json", config = folder / "c.json";
  test::write_file(config, R"({"batch_size": 10, "epochs": 3, "hidden": [5], "mesh": {"batch": 2},
                               "train_size": "all", "test_size": "all", "verbose": 2})");
  const test::ProgramRun run = mnist(
      {"--config", config, "--epochs", "1", "--history", history, "--data-dir", folder / "data"});
  CHECK(read_json_file(history).at("steps").size() == 4);
  CHECK_THAT(run.out, Contains("mesh batch=2"));
  CHECK(mnist({"--help"}).out.find("--layouts") != std::string::npos);
}

TEST_CASE("mnist trains its convolutional model equally under each of its layouts files") {
  const test::TempFolder folder;
  test::write_mnist(folder / "data", 48, 12);
  const auto losses = [&](const Words& more) {
    const std::string history = folder / "h.json";
    Words words = {"--model",      "cnn",          "--train-size", "all",        "--test-size",
                   "all",          "--batch-size", "12",           "--epochs",   "1",
                   "--no-shuffle", "--dtype",      "float64",      "--data-dir", folder / "data",
                   "--history",    history};
    words.insert(words.end(), more.begin(), more.end());
    mnist(words);
    return read_json_file(history).at("steps").get<std::vector<double>>();
  };
  const std::string layouts = test::golden_path("../../apps/mnist/layouts").string();
  for (const Words& options : {Words{}, Words{"--batch-norm", "--dropout", "0"}}) {
    const auto with = [&](Words more) {
      more.insert(more.end(), options.begin(), options.end());
      return losses(more);
    };
    const std::vector<double> one = with({"--mesh", "batch=1"});
    REQUIRE(one.size() == 4);
    for (const char* file : {"spatial", "channels", "hybrid"}) {
      CAPTURE(file);
      const std::vector<double> other = with({"--layouts", layouts + "/" + file + ".json"});
      REQUIRE(other.size() == 4);
      for (size_t i = 0; i < one.size(); ++i) CHECK(std::abs(one[i] - other[i]) < 1e-10);
    }
  }
}

TEST_CASE("custom_loop trains like the guide") {
  const std::string data = test::real_data_folder();
  if (data.empty()) return test::skip("there is no MNIST in $TESSERA_DATA or ../shared/data");
  const test::ProgramRun run =
      test::run_program(test::app_path("custom_loop"), {}, {{"TESSERA_DATA", data}});
  CHECK(run.err == "");
  CHECK(run.exit_code == 0);
  std::smatch match;
  REQUIRE(std::regex_search(
      run.out, match, std::regex("epoch 3: training loss ([0-9.]+), test accuracy ([0-9.]+)")));
  // The results in mnist_core_api.json.
  CHECK(std::stod(match[1]) == Approx(0.15696).epsilon(0.01));
  CHECK(std::stod(match[2]) == Approx(0.9176).epsilon(0.01));
}

TEST_CASE("mnist --profile prints where time was spent and writes a trace") {
  const test::TempFolder folder;
  test::write_mnist(folder / "data", 40, 20);
  const std::string trace = folder / "trace.json";
  const Words words = {"--data-dir", folder / "data", "--train-size", "all", "--test-size", "all",
                       "--hidden",   "8,6",           "--batch-size", "10",  "--epochs",    "2",
                       "--mesh",     "batch=2",       "--profile",    trace};
  const test::ProgramRun run = mnist(words);
  // Two epochs of four training steps and two of validation.
  CHECK_THAT(run.out,
             Contains("\nkind ") && Contains("\n12 steps of ") && Contains("\noutside of steps: "));
  for (const char* row :
       {"step        train ", "step        test ", "op          matmul ", "optimizer   apply ",
        "data        read batch ", "data        pack_batch ", "wait        next batch ",
        "metrics     read loss ", "callback    batch_end "}) {
    CHECK_THAT(run.out, Contains(row));
  }
  CHECK(lines(run.out).back() == "trace: " + trace + " (open it in https://ui.perfetto.dev)");
  int64_t steps = 0;
  for (const Json& event : read_json_file(trace)) {
    steps += event.at("ph") == "X" && event.at("cat") == "step";
  }
  CHECK(steps == 12);

  Words silent = words;
  silent.insert(silent.end(), {"--verbose", "0"});
  std::filesystem::remove(trace);
  CHECK(mnist(silent).out == "");
  CHECK(std::filesystem::exists(trace));
}

}  // namespace mnist_run_test
