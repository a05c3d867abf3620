#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include <tessera/framework/base/json.hpp>

#include "tests/apps/review_export.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/program.hpp"
#include "tests/support/served_program.hpp"

namespace imdb_serve_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using namespace std::chrono_literals;
using test::HttpAnswer;
using test::HttpClient;

namespace {

const std::string predict = "/v1/models/imdb:predict";
const std::string good_body = R"({"instances": ["A good film"]})";

/// Starts `imdb serve` on a free port.
test::ServedProgram serve(const std::string& folder, const std::string& log = "/dev/null") {
  return test::ServedProgram("imdb", {folder}, log);
}

}  // namespace

TEST_CASE("imdb serve answers until SIGTERM and then drops no request") {
  const test::TempFolder folder;
  test::export_reviews(folder / "e");
  test::ServedProgram served = serve(folder / "e", folder / "log");
  REQUIRE(served.port() > 0);
  CHECK_THAT(served.first_line(), Contains("serving version 1 of imdb on http://127.0.0.1:"));
  CHECK(test::http_post(served.port(), predict, good_body).status == 200);
  CHECK(test::http_get(served.port(), "/v1/models/imdb\x1b[2J").status >= 400);
  std::atomic<int> answered = 0;
  std::atomic<int> dropped = 0;
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      try {
        auto client = std::make_unique<HttpClient>(served.port());
        while (true) {
          const HttpAnswer answer = client->post(predict, good_body);
          ++(answer.status == 200 ? answered : dropped);
          if (!answer.keeps_open) client = std::make_unique<HttpClient>(served.port());
        }
      } catch (const std::runtime_error&) {
        // No new connections are accepted.
      }
    });
  }
  std::this_thread::sleep_for(300ms);
  const auto begin = std::chrono::steady_clock::now();
  served.signal(SIGTERM);
  CHECK(served.wait() == 0);
  CHECK(std::chrono::steady_clock::now() - begin < 5s);
  for (std::thread& client : clients) client.join();
  CHECK(answered > 20);
  CHECK(dropped == 0);
  const std::string log = test::read_file(folder / "log");
  CHECK_THAT(log, Contains("POST " + predict + " 200"));
  CHECK(log.find('\x1b') == std::string::npos);
}

TEST_CASE("imdb serve switches to a newer export") {
  const test::TempFolder folder;
  test::export_reviews(folder / "e");
  test::ServedProgram served = serve(folder / "e");
  REQUIRE(served.port() > 0);
  const std::string first = test::http_post(served.port(), predict, good_body).body;
  test::export_reviews(folder / "e", 9);
  std::string status;
  for (int i = 0; i < 100 && status.find("\"2\"") == std::string::npos; ++i) {
    std::this_thread::sleep_for(50ms);
    status = test::http_get(served.port(), "/v1/models/imdb").body;
  }
  CHECK_THAT(status, Contains("\"2\""));
  CHECK(test::http_post(served.port(), predict, good_body).body != first);
  served.signal(SIGINT);
  CHECK(served.wait() == 0);
}

TEST_CASE("imdb serve reports errors in one line") {
  const test::TempFolder folder;
  const auto error = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "serve");
    const test::ProgramRun run = test::run_program(test::app_path("imdb"), words);
    CHECK(run.exit_code == 1);
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    return run.err;
  };
  CHECK_THAT(error({folder / "none"}), Contains("none"));
  CHECK_THAT(error({folder / "none", "--port", "65536"}), Contains("--port"));
  CHECK_THAT(error({folder / "none", "--name", "a/b"}), Contains("--name"));
  CHECK_THAT(error({folder / "none", "--host", "localhost"}), Contains("in digits"));
  // The batch window must not exceed the time that draining waits for a request.
  CHECK_THAT(error({folder / "none", "--batch-window", "5000"}), Contains("--batch-window"));
  CHECK_THAT(error({folder / "none", "more"}), Contains("more"));
  test::export_reviews(folder / "e");
  test::ServedProgram served = serve(folder / "e");
  CHECK_THAT(error({folder / "e", "--port", std::to_string(served.port())}),
             Contains("Address already in use"));
}

}  // namespace imdb_serve_test
