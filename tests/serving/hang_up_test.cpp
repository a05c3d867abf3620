#include <tessera/framework/serving/http/http_server.hpp>

#include <chrono>
#include <memory>

#include "tests/serving/echo_server.hpp"
#include "tests/serving/tls_client.hpp"
#include "tests/serving/within_a_minute.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/http_client.hpp"

namespace hang_up_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using namespace std::chrono_literals;
using test::EchoServer;
using test::HttpAnswer;
using test::HttpClient;
using test::post_bytes;
using test::within_a_minute;

namespace {

bool waits(const EchoServer& server, int count) {
  return within_a_minute([&] { return server.handler().waiting() == count; });
}

bool is_abandoned(const EchoServer& server, int count) {
  return within_a_minute([&] { return server.handler().abandoned() == count; });
}

}  // namespace

TEST_CASE("a handler learns that the client of a request has hung up") {
  EchoServer server;
  HttpClient patient(server.port());
  patient.send(post_bytes("/wait", "x"));
  for (int i = 1; i <= 3; ++i) {
    auto client = std::make_unique<HttpClient>(server.port());
    // An earlier request, and one that the client has sent in advance.
    CHECK(client->post("/echo", "first").body == "first");
    client->send(post_bytes("/wait", "x") + (i == 2 ? post_bytes("/echo", "next") : ""));
    REQUIRE(waits(server, i + 1));
    CHECK(server.handler().abandoned() == i - 1);
    client.reset();
    CHECK(is_abandoned(server, i));
  }
  CHECK(test::http_post(server.port(), "/echo", "on").body == "on");
  CHECK(server.handler().abandoned() == 3);
}

TEST_CASE("a handler learns that the client of a request under TLS has hung up") {
  const test::TlsFiles files;
  EchoServer server({.certificate = files / "server.pem", .key = files / "server.key"});
  auto client = std::make_unique<test::TlsClient>(server.port(), files / "ca.pem");
  client->send(post_bytes("/wait", "x"));
  REQUIRE(waits(server, 1));
  client.reset();
  CHECK(is_abandoned(server, 1));
}

TEST_CASE("a client that closes its sending side is answered if the handler still does") {
  EchoServer server;
  for (const auto& [path, status] : {std::pair("/echo", 200), {"/slow", 200}, {"/wait", 499}}) {
    CAPTURE(path);
    HttpClient client(server.port());
    client.send(post_bytes(path, "x"));
    client.finish();
    CHECK(client.read(60).status == status);
  }
}

TEST_CASE("a request without a response in time gets 504 and is abandoned") {
  EchoServer server({.response_timeout = 50ms});
  HttpClient client(server.port());
  client.send(post_bytes("/wait", "x") + post_bytes("/echo", "next"));
  const HttpAnswer answer = client.read(60);
  CHECK(answer.status == 504);
  CHECK_THAT(answer.body, Contains("must be ready within 50 ms"));
  CHECK_FALSE(answer.keeps_open);
  CHECK(is_abandoned(server, 1));
  // Neither the late response nor that to the next request follows.
  CHECK(client.read(60).status == 0);
  CHECK(test::http_post(server.port(), "/slow", "x").status == 504);
  CHECK(test::http_post(server.port(), "/echo", "x").status == 200);
  EchoServer unlimited({.response_timeout = 0ms});
  CHECK(test::http_post(unlimited.port(), "/slow", "x").status == 200);
}

}  // namespace hang_up_test
