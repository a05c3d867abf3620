#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/program.hpp"
#include "tests/support/skip.hpp"

namespace gpt_experts_test {

using namespace tessera;
using namespace tessera::test;

namespace {

bool has_reviews() {
  const std::string folder = real_data_folder();
  return !folder.empty() && std::filesystem::exists(folder + "/imdb/aclImdb_v1.tar.gz");
}

/// Results of training a small gpt with experts on the real reviews.
struct Trained {
  double loss, entropy, dropped;
};

Trained trained(std::vector<std::string> flags) {
  const TempFolder folder;
  std::vector<std::string> words = {"--vocabulary",
                                    "2000",
                                    "--length",
                                    "64",
                                    "--width",
                                    "64",
                                    "--heads",
                                    "4",
                                    "--head-dim",
                                    "0",
                                    "--blocks",
                                    "2",
                                    "--dropout",
                                    "0",
                                    "--batch-size",
                                    "64",
                                    "--validation-size",
                                    "1000",
                                    "--prompt",
                                    "",
                                    "--verbose",
                                    "0",
                                    "--epochs",
                                    "1",
                                    "--mesh",
                                    "batch=1",
                                    "--steps-per-epoch",
                                    "300",
                                    "--hidden",
                                    "128",
                                    "--experts",
                                    "8",
                                    "--history",
                                    folder / "history.json"};
  words.insert(words.end(), flags.begin(), flags.end());
  const ProgramRun run = run_program(app_path("gpt"), words);
  CAPTURE(words, run.out, run.err);
  REQUIRE(run.exit_code == 0);
  const Json history = read_json_file(folder / "history.json").at("history");
  const auto last = [&](const std::string& name) { return history.at(name).back().get<double>(); };
  return {last("val_loss"), last("block_2/experts/load_entropy"), last("block_2/experts/dropped")};
}

}  // namespace

TEST_CASE("gpt: the auxiliary loss balances experts, and more slots drop fewer tokens",
          "[nightly][imdb]") {
  if (!has_reviews()) return skip("there is no IMDB in $TESSERA_DATA or ../shared/data");
  const auto with = [](const std::string& factor, const std::string& aux) {
    return trained({"--capacity-factor", factor, "--aux-loss", aux});
  };
  double before = 1;
  for (const std::string factor : {"0.5", "1", "1.25", "2"}) {
    const Trained run = with(factor, "0.01");
    std::printf("capacity %s: loss %.4f, entropy %.3f, dropped %.4f\n", factor.c_str(), run.loss,
                run.entropy, run.dropped);
    CHECK(run.dropped < before);
    before = run.dropped;
    if (factor == "1.25") CHECK(run.entropy >= 0.9);
  }
  const Trained uneven = with("1.25", "0");
  std::printf("without the loss: entropy %.3f, dropped %.4f\n", uneven.entropy, uneven.dropped);
  CHECK(uneven.entropy < 0.7);
}

}  // namespace gpt_experts_test
