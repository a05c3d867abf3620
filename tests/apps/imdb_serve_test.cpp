#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

/// `imdb serve` on a free port.
class Served {
 public:
  explicit Served(const std::string& folder, const std::string& log = "/dev/null") {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    const std::string program = test::app_path("imdb");
    pid_ = fork();
    if (pid_ == 0) {
      ::dup2(ends[1], 1);
      ::dup2(::open(log.c_str(), O_WRONLY | O_CREAT, 0600), 2);
      ::execl(program.c_str(), "imdb", "serve", folder.c_str(), "--port", "0", "--access-log",
              nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    FILE* out = ::fdopen(ends[0], "r");
    char line[500] = "";
    if (std::fgets(line, sizeof(line), out)) first_line_ = line;
    std::fclose(out);
    const size_t at = first_line_.find("127.0.0.1:");
    if (at != std::string::npos) port_ = std::atoi(first_line_.c_str() + at + 10);
  }
  ~Served() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  int port() const { return port_; }
  const std::string& first_line() const { return first_line_; }
  void signal(int number) const { ::kill(pid_, number); }
  /// Exit code, 128 + the signal's number if one ended it.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  int port_ = 0;
  std::string first_line_;
};

}  // namespace

TEST_CASE("imdb serve answers until SIGTERM, and drops nothing then") {
  const test::TempFolder folder;
  test::export_reviews(folder / "e");
  Served served(folder / "e", folder / "log");
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
        // No more connections are taken.
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

TEST_CASE("imdb serve takes a newer export over") {
  const test::TempFolder folder;
  test::export_reviews(folder / "e");
  Served served(folder / "e");
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

TEST_CASE("imdb serve says in one line what is wrong") {
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
  // A request must not wait longer for others than draining waits for it.
  CHECK_THAT(error({folder / "none", "--batch-window", "5000"}), Contains("--batch-window"));
  CHECK_THAT(error({folder / "none", "more"}), Contains("more"));
  test::export_reviews(folder / "e");
  Served served(folder / "e");
  CHECK_THAT(error({folder / "e", "--port", std::to_string(served.port())}),
             Contains("Address already in use"));
}

}  // namespace imdb_serve_test
