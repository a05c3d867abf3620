#include <tessera/framework/base/json.hpp>

#include <cstdio>

#include "tests/apps/review_export.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program.hpp"

namespace imdb_predict_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

test::ProgramRun imdb(std::vector<std::string> words) {
  words.insert(words.begin(), "predict");
  return test::run_program(test::app_path("imdb"), words);
}

/// Returns the line that predict prints for a text.
std::string line_of(const ExportedModel& model, const std::string& text) {
  const auto decided = model.decide(model.predict(std::vector<std::string>{text}));
  char line[100];
  std::snprintf(line, sizeof(line), "%s %.6f\n", decided[0].first.c_str(), decided[0].second);
  return line;
}

/// Returns the output of a shell command.
std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  CHECK(pclose(pipe) == 0);
  return text;
}

}  // namespace

TEST_CASE("imdb predict prints the label and probability of every text") {
  const test::TempFolder folder;
  const std::string e = folder / "e";
  test::export_reviews(e);
  const ExportedModel model = load_export(e);
  const test::ProgramRun run = imdb({e, "Good GREAT!", "awful bad bad", "--", "-5 stars"});
  CHECK(run.err == "");
  CHECK(run.out ==
        line_of(model, "good great") + line_of(model, "awful bad bad") + line_of(model, "5 stars"));
  const test::ProgramRun json = imdb({e, "--json", "good"});
  const Json line = parse_json(json.out, "output");
  const double positive = line["probabilities"]["positive"];
  CHECK(positive + line["probabilities"]["negative"].get<double>() == Approx(1));
  CHECK(line["probability"] == std::max(positive, 1 - positive));
}

TEST_CASE("imdb predict reads lines from standard input") {
  const test::TempFolder folder;
  const std::string e = folder / "e";
  test::export_reviews(e);
  const ExportedModel model = load_export(e);
  std::string lines;
  std::string expected;
  for (int i = 0; i < 600; ++i) {
    const std::string text = i % 7 == 0 ? "" : i % 3 == 0 ? "good film" : "bad film";
    lines += text + (i % 5 == 0 ? "\r\n" : "\n");
    expected += line_of(model, text);
  }
  test::write_file(folder / "lines", lines + "great");
  const std::string out = output_of(test::app_path("imdb").string() + " predict " + e + " < " +
                                    (folder / "lines").string());
  CHECK(out == expected + line_of(model, "great"));
}

TEST_CASE("imdb predict reports errors in one line") {
  const test::TempFolder folder;
  const auto error = [&](const std::vector<std::string>& words) {
    const test::ProgramRun run = imdb(words);
    CHECK(run.exit_code == 1);
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    return run.err;
  };
  CHECK_THAT(error({}), Contains("[DIR] must be given"));
  CHECK_THAT(error({folder / "none", "x"}), Contains("none") && Contains("no version"));
  CHECK_THAT(error({folder / "none", "x", "--jsn"}), Contains("--json"));
  CHECK_THAT(imdb({"--help"}).out, Contains("TEXT") && Contains("--json"));
}

}  // namespace imdb_predict_test
