#include <tessera/framework/serving/http/http_server.hpp>

#include <csignal>
#include <memory>
#include <thread>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>

#include "tests/serving/echo_server.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/warnings.hpp"

namespace http_server_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using namespace std::chrono_literals;
using test::EchoHandler;
using test::EchoServer;
using test::HttpAnswer;
using test::HttpClient;

namespace {

std::string repeat(const std::string& text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

/// Checks for a refusal: a JSON error, after which the connection is closed.
void check_refusal(const HttpAnswer& answer, int status) {
  CHECK(answer.status == status);
  CHECK_FALSE(answer.keeps_open);
  CHECK_THAT(answer.head, Contains("Content-Type: application/json"));
  const Json json = parse_json(answer.body, "answer");
  CHECK(json.at("error").is_string());
}

std::string post(const std::string& fields, const std::string& body) {
  return "POST /echo HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n" + body;
}

std::string length_of(const std::string& body) {
  return "Content-Length: " + std::to_string(body.size()) + "\r\n";
}

}  // namespace

TEST_CASE("successive requests are answered on one connection") {
  EchoServer server;
  HttpClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    const HttpAnswer answer = client.post("/echo", "body " + std::to_string(i));
    CHECK(answer.status == 200);
    CHECK(answer.body == "body " + std::to_string(i));
    CHECK(answer.keeps_open);
  }
  CHECK(client.get("/echo").body == "");
  // Pipelined requests are answered in order.
  client.send(test::post_bytes("/echo", "one") + test::post_bytes("/echo", "two"));
  CHECK(client.read().body == "one");
  CHECK(client.read().body == "two");
}

TEST_CASE("chunked bodies, closing clients and HTTP/1.0") {
  EchoServer server;
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  CHECK(test::http_ask(server.port(), post(chunked, "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n")).body ==
        "abcde");
  const HttpAnswer last =
      test::http_ask(server.port(), post("Connection: close\r\n" + length_of("x"), "x"));
  CHECK(last.body == "x");
  CHECK_FALSE(last.keeps_open);
  CHECK(test::http_ask(server.port(), "POST /echo HTTP/1.0\r\nContent-Length: 1\r\n\r\nx").body ==
        "x");
  HttpClient careful(server.port());
  CHECK(careful.ask(post("Expect: 100-continue\r\n" + length_of("abc"), "")).status == 100);
  CHECK(careful.ask("abc").body == "abc");
}

TEST_CASE("requests that the handler refuses are refused before their body is sent") {
  EchoServer server;
  check_refusal(test::http_ask(server.port(), "POST /none HTTP/1.1\r\nContent-Length: 100\r\n\r\n"),
                404);
  HttpClient client(server.port());
  const HttpAnswer answer = client.ask("DELETE /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(answer.status == 405);
  CHECK_THAT(answer.head, Contains("Allow: POST"));
  CHECK(answer.keeps_open);
  CHECK(client.post("/echo", "x").body == "x");
  client.send("HEAD /none HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(client.read_head().status == 404);
  CHECK(client.post("/echo", "y").body == "y");
}

TEST_CASE("headers and bodies that are too large are refused") {
  EchoServer server;
  const int port = server.port();
  const auto with_header = [](size_t size) {
    const std::string begin = "POST /echo HTTP/1.1\r\nContent-Length: 1\r\nX: ";
    return begin + std::string(size - begin.size() - 4, 'x') + "\r\n\r\n";
  };
  CHECK(test::http_ask(port, with_header(8192) + "b").status == 200);
  check_refusal(test::http_ask(port, with_header(8193) + "b"), 431);
  check_refusal(test::http_ask(port, "GET /" + std::string(100000, 'x') + " HTTP/1.1\r\n\r\n"),
                431);
  const std::string largest_body(1 << 20, 'b');
  CHECK(test::http_ask(port, post(length_of(largest_body), largest_body)).body == largest_body);
  check_refusal(test::http_ask(port, post(length_of(largest_body + "b"), largest_body + "b")), 413);
  check_refusal(test::http_ask(port, post("Content-Length: 99999999999\r\n", "")), 413);
  HttpClient endless(port);
  endless.send(post("Transfer-Encoding: chunked\r\n", ""));
  const std::string chunk = "10000\r\n" + std::string(65536, 'b') + "\r\n";
  for (int i = 0; i < 17; ++i) endless.send(chunk);
  check_refusal(endless.read(), 413);
}

TEST_CASE("a million chunks of one byte are refused at once") {
  EchoServer server;
  HttpClient client(server.port());
  client.send(post("Transfer-Encoding: chunked\r\n", ""));
  const std::string chunks = repeat("1\r\nb\r\n", 10000);
  for (int i = 0; i < 100 && client.send(chunks); ++i) continue;
  check_refusal(client.read(), 413);
}

TEST_CASE("requests that are no HTTP are refused") {
  EchoServer server;
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  for (const std::string& request : std::vector<std::string>{
           "nonsense\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET  HTTP/1.1\r\n\r\n",
           "GET /echo HTTP/1.1\r\nbad field\r\n\r\n", "GET /echo HTTP/1.1\r\nX\x01: y\r\n\r\n",
           post("Content-Length: -1\r\n", "x"), post("Content-Length: 1x\r\n", "x"),
           post("Content-Length: 99999999999999999999\r\n", ""),
           post("Content-Length: 1\r\nContent-Length: 2\r\n", "xx"),
           post("Content-Length: 1\r\n" + chunked, "1\r\nx\r\n0\r\n\r\n"),
           post(chunked, "-2\r\nxx\r\n"), post(chunked, "zz\r\n"),
           post(chunked, "FFFFFFFFFFFFFFFFF\r\nx"), post(chunked, "1\r\nxyz\r\n"),
           post(chunked, "1;" + std::string(100000, 'e') + "\r\nx\r\n"),
           "\x16\x03\x01\x02\x01\r\n\r\n"}) {
    CAPTURE(request.substr(0, 100));
    check_refusal(test::http_ask(server.port(), request), 400);
  }
}

TEST_CASE("bodies without a length, compressed or of other types are refused") {
  EchoServer server;
  const int port = server.port();
  check_refusal(test::http_ask(port, post("", "")), 411);
  check_refusal(test::http_ask(port, post("Content-Encoding: gzip\r\n" + length_of("x"), "x")),
                415);
  check_refusal(
      test::http_ask(port, post("Transfer-Encoding: gzip, chunked\r\n", "1\r\nx\r\n0\r\n\r\n")),
      415);
  CHECK(
      test::http_ask(port, post("Transfer-Encoding: Chunked\r\n", "1\r\nx\r\n0\r\n\r\n")).status ==
      200);
  check_refusal(test::http_ask(port, post("Content-Type: image/png\r\n" + length_of("x"), "x")),
                415);
  for (const char* type : {"application/json; charset=utf-8", "Application/JSON", "text/plain",
                           "application/x-www-form-urlencoded"}) {
    CAPTURE(type);
    CHECK(test::http_ask(port, post(str("Content-Type: ", type, "\r\n", length_of("x")), "x"))
              .status == 200);
  }
}

TEST_CASE("slow clients get 408, silent ones are closed") {
  EchoServer server({.read_timeout = 200ms, .idle_timeout = 300ms});
  HttpClient header(server.port());
  check_refusal(header.ask("POST /echo HT"), 408);
  HttpClient body(server.port());
  check_refusal(body.ask(post("Content-Length: 10\r\n", "abc")), 408);
  // Single bytes now and then do not extend the time.
  HttpClient dripping(server.port());
  HttpAnswer answer;
  for (int i = 0; i < 30 && answer.status == 0; ++i) {
    dripping.send("G");
    answer = dripping.read(0.05);
  }
  check_refusal(answer, 408);
  HttpClient silent(server.port());
  CHECK(silent.read(2).status == 0);
  HttpClient idle(server.port());
  CHECK(idle.post("/echo", "x").status == 200);
  CHECK(idle.read(2).status == 0);
}

TEST_CASE("connections beyond the limit are answered with 503") {
  EchoServer server({.max_connections = 3});
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server.port()));
    CHECK(clients.back()->post("/echo", "x").status == 200);
  }
  check_refusal(test::http_post(server.port(), "/echo", "x"), 503);
  clients.pop_back();
  HttpAnswer answer;
  // The server may take a while to notice the closed connection.
  for (int i = 0; i < 1000 && answer.status != 200; ++i) {
    std::this_thread::sleep_for(10ms);
    answer = test::http_post(server.port(), "/echo", "x");
  }
  CHECK(answer.status == 200);
}

TEST_CASE("a server with a token answers only requests that have it") {
  const std::string token(40, 't');
  EchoServer server({.token = token});
  const auto ask = [&](const std::string& fields) {
    return HttpClient(server.port()).ask("GET /echo HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n");
  };
  CHECK(ask("Authorization: Bearer " + token + "\r\n").status == 200);
  CHECK(ask("authorization: bearer " + token + "\r\n").status == 200);
  for (const std::string& fields :
       {std::string(), "Authorization: Bearer " + token + "x\r\n",
        std::string("Authorization: \r\n"), "Authorization: Bearer " + token.substr(1) + "\r\n",
        "Authorization: Basic " + token + "\r\n", std::string("Authorization: Bearer \r\n")}) {
    CAPTURE(fields);
    const HttpAnswer answer = ask(fields);
    check_refusal(answer, 401);
    CHECK_THAT(answer.head, Contains("WWW-Authenticate: Bearer"));
  }
  // Before anything of the body or path is read.
  check_refusal(test::http_post(server.port(), "/none", "x"), 401);
}

TEST_CASE("a server beyond this host needs a token, or an explicit opt-out") {
  EchoHandler handler;
  CHECK_THROWS_WITH(
      HttpServer({.host = "0.0.0.0"}, handler),
      Contains("[serve] a server that listens beyond this host needs a token. Received: "
               "0.0.0.0 without one"));
  CHECK_THROWS_WITH(HttpServer({.token = "short"}, handler), Contains("32 to 4096 characters"));
  CHECK(HttpServer({.host = "0.0.0.0", .token = std::string(32, 't')}, handler).port() > 0);
  const test::Warnings warnings;
  CHECK(HttpServer({.host = "0.0.0.0", .insecure = true}, handler).port() > 0);
  CHECK_THAT(warnings.text(), Contains("Warning: [serve] listens beyond this host, at 0.0.0.0"));
  CHECK(HttpServer({.host = "127.0.0.2"}, handler).port() > 0);
}

TEST_CASE("a client that takes all connections leaves room for another client") {
  EchoServer server({.max_connections = 6});
  std::vector<std::unique_ptr<HttpClient>> greedy;
  for (int i = 0; i < 6; ++i) {
    greedy.push_back(std::make_unique<HttpClient>(server.port()));
    CHECK(greedy.back()->post("/echo", "x").status == 200);
  }
  // The connection idle for longest is closed; the first has just made a request.
  CHECK(greedy[0]->post("/echo", "x").status == 200);
  std::vector<std::unique_ptr<HttpClient>> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(std::make_unique<HttpClient>(server.port(), "127.0.0.2"));
    CHECK(others.back()->post("/echo", "x").status == 200);
  }
  // Both clients have the same number: neither loses a connection to the other.
  HttpClient fourth(server.port(), "127.0.0.2");
  check_refusal(fourth.read(), 503);
  check_refusal(test::http_post(server.port(), "/echo", "x"), 503);
  for (const auto& other : others) CHECK(other->post("/echo", "x").status == 200);
  std::vector<int> left;
  for (const auto& client : greedy) left.push_back(client->post("/echo", "x").status);
  CHECK(left == std::vector<int>{200, 0, 0, 0, 200, 200});
}

TEST_CASE("connections with a pending answer are not closed for others") {
  EchoServer server({.max_connections = 3});
  std::vector<std::unique_ptr<HttpClient>> busy;
  for (int i = 0; i < 3; ++i) {
    busy.push_back(std::make_unique<HttpClient>(server.port()));
    busy.back()->send(test::post_bytes("/never", "x"));
  }
  // Until all requests are running.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  HttpClient other(server.port(), "127.0.0.2");
  check_refusal(other.read(), 503);
}

TEST_CASE("a client that hangs up does not affect others") {
  EchoServer server;
  for (int i = 0; i < 50; ++i) {
    HttpClient client(server.port());
    client.send(post("Content-Length: 10\r\n", "abc").substr(0, static_cast<size_t>(i)));
  }
  for (int i = 0; i < 50; ++i) HttpClient(server.port()).send(test::post_bytes("/slow", "x"));
  CHECK(test::http_post(server.port(), "/echo", "x").status == 200);
}

TEST_CASE("an exception in the handler is a server error") {
  EchoServer server;
  check_refusal(test::http_post(server.port(), "/throw", "x"), 500);
  CHECK(test::http_post(server.port(), "/echo", "x").status == 200);
}

TEST_CASE("stopping answers pending requests and accepts no more") {
  EchoServer server;
  HttpClient waiting(server.port());
  waiting.send(test::post_bytes("/slow", "answered"));
  HttpClient idle(server.port());
  CHECK(idle.post("/echo", "x").status == 200);
  std::this_thread::sleep_for(20ms);
  server.stop();
  const HttpAnswer answer = waiting.read();
  CHECK(answer.body == "answered");
  CHECK_FALSE(answer.keeps_open);
  CHECK(idle.read(5).status == 0);
  server.join();
  CHECK_THROWS(HttpClient(server.port()));
}

TEST_CASE("a signal ends an idle server") {
  EchoServer server({.signals = true});
  CHECK(test::http_post(server.port(), "/echo", "x").status == 200);
  std::this_thread::sleep_for(50ms);
  ::raise(SIGTERM);
  server.join();
  CHECK_THROWS(HttpClient(server.port()));
}

TEST_CASE("a missing answer ends with the drain timeout") {
  EchoServer server({.drain_timeout = 200ms});
  HttpClient waiting(server.port());
  waiting.send(test::post_bytes("/never", "x"));
  std::this_thread::sleep_for(50ms);
  const auto begin = std::chrono::steady_clock::now();
  server.stop();
  server.join();
  CHECK(std::chrono::steady_clock::now() - begin < 2s);
}

TEST_CASE("a server cannot listen on a port in use") {
  EchoServer server;
  test::EchoHandler handler;
  CHECK_THROWS_AS(HttpServer({.port = server.port()}, handler), ConfigError);
  CHECK_THROWS_WITH(HttpServer({.host = "localhost.x"}, handler), Contains("localhost.x"));
}

}  // namespace http_server_test
