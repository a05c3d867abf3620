#include <signal.h>

#include <tessera/framework/base/json.hpp>

#include "apps/gpt/text_handler.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/program.hpp"
#include "tests/support/served_program.hpp"

namespace gpt_serve_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::gpt;
using Catch::Matchers::Contains;
using test::HttpAnswer;

namespace {

const std::string predict = "/v1/models/gpt:predict";

/// Trains a small model for one step and saves it in a folder.
void save_model(const std::string& folder) {
  const test::ProgramRun run =
      test::run_program(test::app_path("gpt"),
                        {"--width",
                         "16",
                         "--hidden",
                         "16",
                         "--head-dim",
                         "8",
                         "--length",
                         "12",
                         "--epochs",
                         "1",
                         "--train-size",
                         "32",
                         "--batch-size",
                         "16",
                         "--vocabulary",
                         "60",
                         "--mesh",
                         "batch=1",
                         "--kv-heads",
                         "1",
                         "--tied",
                         "--prompt",
                         "",
                         "--save",
                         folder},
                        {{"TESSERA_DATA", ""}, {"XDG_CACHE_HOME", folder + "/cache"}});
  CAPTURE(run.out, run.err);
  REQUIRE(run.exit_code == 0);
}

}  // namespace

TEST_CASE("gpt serve continues texts like generate") {
  const test::TempFolder folder;
  save_model(folder / "m");
  test::ServedProgram served("gpt", {folder / "m", "--max-words", "50"}, folder / "log");
  REQUIRE(served.port() > 0);
  CHECK_THAT(served.first_line(), Contains("serving gpt on http://127.0.0.1:"));
  const auto ask = [&](const std::string& body) {
    return test::http_post(served.port(), predict, body);
  };
  const HttpAnswer answer =
      ask(R"({"instances": ["the film", "a bad one"], "words": 6, "seed": 1337})");
  REQUIRE(answer.status == 200);
  const Json texts = parse_json(answer.body, "answer").at("predictions");
  const test::ProgramRun generated = test::run_program(
      test::app_path("gpt"),
      {"generate", folder / "m", "--words", "6", "--mesh", "batch=1", "the film", "a bad one"});
  CHECK(generated.out == texts[0].get<std::string>() + "\n" + texts[1].get<std::string>() + "\n");
  CHECK(ask(R"({"instances": ["the film"], "words": 6, "top_k": 1})").body ==
        ask(R"({"instances": ["the film"], "words": 6, "top_k": 1, "seed": 2})").body);
  CHECK(ask(R"({"instances": ["the film"], "words": 20, "seed": 1})").body !=
        ask(R"({"instances": ["the film"], "words": 20, "seed": 2})").body);

  const std::vector<std::tuple<std::string, int, std::string>> refused = {
      {R"({"instances": [""]})", 400, "contain words"},
      {R"({"instances": []})", 400, "1 to 16 instances"},
      {R"({"instances": ["a", 3]})", 400, "instances"},
      {R"({"instances": ["a"], "words": 51})", 400, "words"},
      {R"({"instances": ["a"], "top_k": 0})", 400, "top_k"},
      {R"({"instances": ["a"], "temperature": 0})", 400, "temperature"},
      {R"({"instances": ["a"], "word": 3})", 400, "word"},
      {R"({"instances": ["a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a"]})",
       413, "16"},
      {"[", 400, "request"}};
  for (const auto& [body, status, text] : refused) {
    CAPTURE(body);
    const HttpAnswer refusal = ask(body);
    CHECK(refusal.status == status);
    CHECK_THAT(refusal.body, Contains(text));
  }
  CHECK(test::http_get(served.port(), "/healthz").status == 200);
  CHECK(test::http_get(served.port(), "/v1/models/gpt/metadata").status == 404);
  CHECK(test::http_get(served.port(), predict).status == 405);
  served.signal(SIGTERM);
  CHECK(served.wait() == 0);
  CHECK_THAT(test::read_file(folder / "log"), Contains("POST " + predict + " 200"));
}

TEST_CASE("gpt serve stops while it is generating a text") {
  const test::TempFolder folder;
  save_model(folder / "m");
  test::ServedProgram served("gpt", {folder / "m", "--max-words", "1000000"});
  REQUIRE(served.port() > 0);
  test::HttpClient client(served.port());
  client.send(test::post_bytes(predict, R"({"instances": ["the film"], "words": 1000000})"));
  CHECK(test::http_get(served.port(), "/healthz").status == 200);
  served.signal(SIGTERM);
  served.signal(SIGTERM);
  CHECK(served.wait() == 0);
}

TEST_CASE("gpt serve reports errors in one line") {
  const test::TempFolder folder;
  const auto error = [](std::vector<std::string> words) {
    words.insert(words.begin(), "serve");
    const test::ProgramRun run = test::run_program(test::app_path("gpt"), words);
    CHECK(run.exit_code == 1);
    return run.err;
  };
  CHECK_THAT(error({folder / "none"}), Contains("gpt.json"));
  CHECK_THAT(error({folder.path(), "--name", "a/b"}), Contains("[--name]"));
  CHECK_THAT(error({folder.path(), "--temperature", "0"}), Contains("--temperature"));
  CHECK_THAT(error({}), Contains("DIR"));
}

}  // namespace gpt_serve_test
