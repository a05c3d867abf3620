#include <tessera/framework/base/json.hpp>

#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/program.hpp"
#include "tests/support/skip.hpp"

namespace imdb_train_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

using Words = std::vector<std::string>;

/// Runs imdb on synthetic reviews.
test::ProgramRun imdb(const Words& words) {
  static const test::TempFolder cache;
  return test::run_program(test::app_path("imdb"), words,
                           {{"TESSERA_DATA", ""}, {"XDG_CACHE_HOME", cache.path()}});
}

std::vector<double> numbers(const Json& json) { return json.get<std::vector<double>>(); }

double relative(double a, double b) { return std::abs(a / b - 1); }

}  // namespace

TEST_CASE("imdb train: the three schemes in sequence reproduce the tutorial") {
  const std::string data = test::real_data_folder();
  if (data.empty() || !std::filesystem::exists(data + "/imdb/aclImdb_v1.tar.gz")) {
    return test::skip("there is no IMDB in $TESSERA_DATA or ../shared/data");
  }
  const test::TempFolder folder;
  const std::string file = folder / "h.json";
  const test::ProgramRun run = test::run_program(
      test::app_path("imdb"), {"--no-shuffle", "--history", file}, {{"TESSERA_DATA", data}});
  REQUIRE(run.exit_code == 0);
  CHECK(run.err == "");
  const Json phases = read_json_file(file).at("phases");
  const Json golden = read_json_file(test::golden_path("imdb_dtensor.json")).at("phases");
  REQUIRE(phases.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(phases[i].at("scheme") == golden[i].at("scheme"));
    CHECK(phases[i].at("steps").size() == 2 * 391);
    const Json& history = phases[i].at("history");
    for (size_t epoch = 0; epoch < 2; ++epoch) {
      const Json& expected = golden[i].at("epochs")[epoch];
      INFO(golden[i].at("scheme") << ", epoch " << epoch);
      const double loss = numbers(history.at("loss"))[epoch];
      const double accuracy = numbers(history.at("accuracy"))[epoch];
      CHECK(loss > 0.8 * expected.at("mean_loss").get<double>());
      CHECK(loss < 1.35 * expected.at("mean_loss").get<double>());
      CHECK(std::abs(accuracy - expected.at("mean_accuracy").get<double>()) < 0.03);
    }
  }
  const std::vector<double> steps = numbers(phases[0].at("steps"));
  const std::vector<double> expected = numbers(golden[0].at("first_100_losses"));
  CHECK(relative(steps[0], expected[0]) < 1e-6);
  for (size_t i = 1; i < 5; ++i) CHECK(relative(steps[i], expected[i]) < 1e-4);
}

TEST_CASE("imdb train: a killed run resumes to a bit-identical end") {
  const test::TempFolder folder;
  const Words words = {"--train-size", "1500", "--save-every", "5", "--verbose", "0"};
  const auto run = [&](const std::string& name, const Words& more) {
    Words all = {"train", "--checkpoint-dir", folder / name, "--history",
                 folder / (name + ".json")};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  REQUIRE(imdb(run("whole", {})).exit_code == 0);

  // In the middle of the first epoch, in the middle of the second scheme, and between two schemes.
  const std::string at = GENERATE("step-000005", "step-000068", "step-000048");
  INFO("killed at " << at);
  const std::string script = "\"$@\" & for i in $(seq 1 6000); do [ -e \"" +
                             (folder / "killed").string() + "/" + at +
                             "\" ] && break; sleep 0.01; done; kill -9 $!; wait $!";
  Words shell = {"-c", script, "sh", test::app_path("imdb").string()};
  for (const std::string& word : run("killed", {})) shell.push_back(word);
  static const test::TempFolder cache;
  const test::ProgramRun killed =
      test::run_program("/bin/sh", shell, {{"TESSERA_DATA", ""}, {"XDG_CACHE_HOME", cache.path()}});
  CHECK(killed.exit_code == 128 + 9);
  CHECK(!std::filesystem::exists(folder / "killed.json"));

  const test::ProgramRun resumed = imdb(run("killed", {"--resume"}));
  CHECK(resumed.err == "");
  REQUIRE(resumed.exit_code == 0);
  CHECK(test::read_file(folder / "killed.json") == test::read_file(folder / "whole.json"));
}

TEST_CASE("imdb train: a scheme starts from the folder's weights and exports what it learned") {
  const test::TempFolder folder;
  const Words small = {"--train-size", "400", "--epochs", "1", "--max-tokens", "200"};
  const auto with = [&](Words words) {
    words.insert(words.end(), small.begin(), small.end());
    return words;
  };
  const std::string checkpoints = folder / "ck";
  test::ProgramRun run = imdb(with({"train", "--scheme", "data", "--checkpoint-dir", checkpoints}));
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, !Contains("from the weights"));
  run = imdb(with({"train", "--scheme", "spatial", "--checkpoint-dir", checkpoints, "--validation",
                   "--test-size", "100", "--export", folder / "model", "--plot",
                   folder / "curves.svg", "--summary", "--plan"}));
  CHECK(run.err == "");
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("from the weights in " + checkpoints + "/step-000007"));
  CHECK_THAT(run.out, Contains("Exported version 1") && Contains("test accuracy"));
  CHECK_THAT(run.out, Contains("dense1 (Dense)") && Contains("A training step on mesh batch=2"));
  CHECK(run.out.find_first_of("\x1b\b\r") == std::string::npos);
  CHECK_THAT(test::read_file(folder / "curves.svg"), Contains("</svg>"));
  run = imdb({"predict", folder / "model", "what a film"});
  CHECK(run.exit_code == 0);
  CHECK((run.out.starts_with("negative ") || run.out.starts_with("positive ")));
}

TEST_CASE("imdb reports wrong options in one line") {
  const auto [words, text] = GENERATE(table<Words, std::string>(
      {{{"tran"}, "the command is train, predict or serve. Received: \"tran\". To fix: write tra"},
       {{"--resume"}, "[--resume] needs a folder of checkpoints"},
       {{"--save-every", "3"}, "[--save-every] needs a folder for the checkpoints"},
       {{"--export", "/dev/null/model"}, "[--export] must be in a folder you may write to"},
       {{"--scheme", "all", "--mesh", "batch=2"}, "[--scheme] the three schemes have meshes"},
       {{"train", "--scheme", "modl"}, "--scheme"},
       {{"--max-tokens", "1"}, "--max-tokens"},
       {{"--train-size", "99999999"}, "reviews"},
       {{"--data-dir", "/nowhere"}, "/nowhere"},
       {{"--learning-rat", "3"}, "write --learning-rate"}}));
  const test::ProgramRun run = imdb(words);
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.err, StartsWith("imdb: error: ") && Contains(text));
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
}

TEST_CASE("imdb train: --resume refuses the checkpoints of another run") {
  const test::TempFolder folder;
  const Words common = {"--checkpoint-dir", folder.path(), "--epochs", "1", "--verbose", "0"};
  const auto with = [&](Words words) {
    words.insert(words.end(), common.begin(), common.end());
    return words;
  };
  // The folder has no checkpoint yet.
  const test::ProgramRun first =
      imdb(with({"--scheme", "data", "--train-size", "200", "--resume"}));
  REQUIRE(first.exit_code == 0);
  CHECK(first.out == "");
  const std::vector<Words> others = {{"schemes", "--scheme", "model"},
                                     {"reviews 201", "--train-size", "201"},
                                     {"max_tokens", "--max-tokens", "500"},
                                     {"validation", "--validation"},
                                     {"batch_size 32, not 64", "--batch-size", "32"},
                                     {"steps_per_epoch 2, not null", "--steps-per-epoch", "2"},
                                     {"learning_rate 0.02, not 0.01", "--learning-rate", "0.02"},
                                     {"shuffle", "--no-shuffle"},
                                     {"seed", "--seed", "3"},
                                     {"dtype", "--dtype", "float64"}};
  for (const Words& other : others) {
    Words words = {"--scheme", "data", "--train-size", "200", "--resume"};
    words.insert(words.end(), other.begin() + 1, other.end());
    const test::ProgramRun run = imdb(with(words));
    CHECK(run.exit_code == 1);
    CHECK_THAT(run.err, Contains("[--resume] the options must be those of the run that wrote the "
                                 "checkpoint. Received: " +
                                 other[0]));
  }
  // A run with more epochs continues.
  const test::ProgramRun longer =
      imdb({"--scheme", "data", "--train-size", "200", "--resume", "--checkpoint-dir",
            folder.path(), "--epochs", "2", "--verbose", "2"});
  CHECK(longer.exit_code == 0);
  CHECK_THAT(longer.out, Contains("step-000004\nEpoch 2/2"));
}

TEST_CASE("imdb train: --resume with a damaged checkpoint restarts that scheme") {
  const test::TempFolder folder;
  const std::string checkpoints = folder / "ck", uninterrupted = folder / "uninterrupted.json",
                    resumed = folder / "resumed.json";
  const auto train = [&](const Words& more) {
    Words words = {"--train-size", "300", "--epochs", "1", "--checkpoint-dir", checkpoints};
    words.insert(words.end(), more.begin(), more.end());
    return imdb(words);
  };
  REQUIRE(train({"--history", uninterrupted}).exit_code == 0);
  // The only checkpoint of the last scheme; earlier ones belong to the other two.
  const std::string shard = checkpoints + "/step-000015/shard-00000.safetensors";
  std::string bytes = test::read_file(shard);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  test::write_file(shard, bytes);
  const test::ProgramRun run = train({"--history", resumed, "--resume"});
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.err, Contains("damaged") && Contains("step-000015"));
  CHECK_THAT(run.out, Contains("Resuming from " + checkpoints + "/step-000010"));
  CHECK(test::read_file(resumed) == test::read_file(uninterrupted));
}

}  // namespace imdb_train_test
