#include <tessera/framework/serving/http/http_session.hpp>

#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "tests/serving/echo_server.hpp"
#include "tests/serving/parsing_server.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/http_client.hpp"

namespace http_session_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::EchoServer;
using test::HttpAnswer;
using test::HttpClient;

namespace {

/// Redirects standard error to a file during its lifetime.
class ErrorFile {
 public:
  explicit ErrorFile(const std::string& path) : before_(::dup(2)) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ::dup2(file, 2);
    ::close(file);
  }
  ~ErrorFile() {
    ::dup2(before_, 2);
    ::close(before_);
  }
  ErrorFile(const ErrorFile&) = delete;
  ErrorFile& operator=(const ErrorFile&) = delete;

 private:
  int before_;
};

}  // namespace

TEST_CASE("an HTTP/1.0 client that keeps its connection gets the header for it") {
  EchoServer server;
  const std::string old = "POST /echo HTTP/1.0\r\nContent-Length: 1\r\n";
  HttpClient client(server.port());
  for (int i = 0; i < 2; ++i) {
    const HttpAnswer answer = client.ask(old + "Connection: keep-alive\r\n\r\nx");
    CHECK(answer.body == "x");
    CHECK_THAT(answer.head, Contains("Connection: keep-alive"));
  }
  CHECK_FALSE(client.ask(old + "\r\nx").keeps_open);
  const HttpAnswer newer = test::http_post(server.port(), "/echo", "x");
  CHECK_THAT(newer.head, !Contains("Connection:"));
}

TEST_CASE("HEAD is answered as GET without the body") {
  test::ParsingServer server;
  HttpClient client(server.port());
  for (const char* path : {"/healthz", "/v1/models/imdb", "/v1/models/imdb/metadata"}) {
    CAPTURE(path);
    client.send("HEAD " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n");
    const HttpAnswer head = client.read_head();
    CHECK(head.status == 200);
    const HttpAnswer get = client.get(path);
    CHECK(get.status == 200);
    CHECK(get.body == "{}");
    CHECK(head.head == get.head);
  }
  client.send("HEAD /v1/models/imdb:predict HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(client.read_head().status == 405);
  const HttpAnswer posted = client.post("/healthz", "{}");
  CHECK(posted.status == 405);
  CHECK_THAT(posted.head, Contains("Allow: GET, HEAD\r\n"));
}

TEST_CASE("the log has a line for each answer, also to malformed requests") {
  const test::TempFolder folder;
  {
    const ErrorFile errors(folder / "log");
    EchoServer server({.access_log = true});
    test::http_post(server.port(), "/echo", "x");
    test::http_ask(server.port(), "POST /echo HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n");
    test::http_ask(server.port(), "nonsense\r\n\r\n");
  }
  CHECK(test::read_file(folder / "log") == "POST /echo 200\n- 413\n- 400\n");
}

}  // namespace http_session_test
