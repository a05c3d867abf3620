#include <tessera/framework/serving/http/http_server.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/serving/http/tls_context.hpp>

#include "tests/serving/echo_server.hpp"
#include "tests/serving/tls_client.hpp"
#include "tests/serving/tls_files.hpp"
#include "tests/serving/within_a_minute.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/warnings.hpp"

namespace tls_server_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using namespace std::chrono_literals;
using test::EchoHandler;
using test::EchoServer;
using test::HttpClient;
using test::post_bytes;
using test::TlsClient;
using test::TlsFiles;

namespace {

HttpServerOptions with_tls(const TlsFiles& files, HttpServerOptions options = {}) {
  options.certificate = files / "server.pem";
  options.key = files / "server.key";
  return options;
}

/// Returns the error of starting a server.
std::string refused(const HttpServerOptions& options) {
  EchoHandler handler;
  try {
    HttpServer server(options, handler);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("successive requests are answered under TLS on one connection") {
  const TlsFiles files;
  EchoServer server(with_tls(files));
  for (const int newest : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(server.port(), files / "ca.pem", newest);
    CHECK(client.version() == (newest == TLS1_2_VERSION ? "TLSv1.2" : "TLSv1.3"));
    for (int i = 0; i < 3; ++i) {
      const std::string body = "body " + std::to_string(i);
      const std::string answer = client.ask(post_bytes("/echo", body), body);
      CHECK_THAT(answer, Contains("HTTP/1.1 200 OK"));
    }
  }
  const std::string large(900000, 'x');
  TlsClient client(server.port(), files / "ca.pem");
  CHECK_THAT(client.ask(post_bytes("/echo", large), large), Contains("HTTP/1.1 200 OK"));
}

TEST_CASE("clients that trust another authority or speak an older TLS get no connection") {
  const TlsFiles files, others;
  EchoServer server(with_tls(files));
  CHECK_THROWS_WITH(TlsClient(server.port(), others / "ca.pem"),
                    Contains("certificate verify failed"));
  CHECK_THROWS_AS(TlsClient(server.port(), files / "ca.pem", TLS1_1_VERSION), std::runtime_error);
  TlsClient client(server.port(), files / "ca.pem");
  CHECK_THAT(client.ask(post_bytes("/echo", "on"), "on"), Contains("200 OK"));
}

TEST_CASE("an invalid certificate or key is one line at the start") {
  const TlsFiles files, others;
  HttpServerOptions options = with_tls(files);
  options.key = "";
  CHECK_THAT(refused(options), Contains("Received: a certificate alone. To fix: give both"));
  options = with_tls(files);
  options.certificate = "";
  CHECK_THAT(refused(options), Contains("Received: a key alone"));
  options = with_tls(files);
  options.key = files / "none.key";
  CHECK_THAT(refused(options), Contains("none.key") && Contains("No such file"));
  options.key = files / "other.key";
  CHECK_THAT(refused(options), Contains("the key is that of the certificate. Received: another "
                                        "one, in ") &&
                                   Contains("other.key"));
  options.key = files / "server.pem";
  CHECK_THAT(refused(options), Contains("a private key in PEM") && Contains("server.pem"));
  options = with_tls(files);
  options.certificate = files / "server.key";
  CHECK_THAT(refused(options), Contains("certificates in PEM") && Contains("server.key"));
  CHECK(refused(with_tls(files)) == "");
  // OpenSSL's own reason.
  CHECK_THAT(refused(options), Contains("server.key\": no start line"));
  options = with_tls(files);
  std::filesystem::permissions(options.key, std::filesystem::perms::group_read,
                               std::filesystem::perm_options::add);
  CHECK_THAT(refused(options), Contains("[serve, key] must name a file that only the user running "
                                        "this process can read") &&
                                   Contains("To fix: run: chmod 600 " + options.key));
}

TEST_CASE("under TLS 1.2, only ciphers with forward secrecy and authentication are accepted") {
  const TlsFiles files;
  EchoServer server(with_tls(files));
  for (const char* cipher : {"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
                             "ECDHE-ECDSA-CHACHA20-POLY1305"}) {
    CAPTURE(cipher);
    TlsClient client(server.port(), files / "ca.pem", TLS1_2_VERSION, cipher);
    CHECK_THAT(client.ask(post_bytes("/echo", "on"), "on"), Contains("200 OK"));
  }
  for (const char* cipher : {"ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384",
                             "ECDHE-ECDSA-AES128-CCM", "AES128-SHA", "AES256-GCM-SHA384"}) {
    CAPTURE(cipher);
    CHECK_THROWS_AS(TlsClient(server.port(), files / "ca.pem", TLS1_2_VERSION, cipher),
                    std::runtime_error);
  }
}

TEST_CASE("a certificate that has ended is refused, one that ends soon is warned about") {
  const test::Warnings warnings;
  CHECK_THAT(refused(with_tls(TlsFiles(-60))),
             Contains("the certificate has not ended. Received: ") &&
                 Contains("server.pem\", which ended on 20") && Contains("UTC. To fix: renew it"));
  constexpr int64_t day = 86400;
  CHECK(refused(with_tls(TlsFiles(15 * day))) == "");
  CHECK(warnings.text() == "");
  CHECK(refused(with_tls(TlsFiles(13 * day))) == "");
  CHECK_THAT(warnings.text(), Contains("Warning: [serve, certificate] the certificate ends soon"));
}

TEST_CASE("a certificate that ends while it is served is warned about once") {
  const TlsFiles files(2);
  const test::Warnings warnings;
  TlsContext tls(files / "server.pem", files / "server.key", 0ms);
  CHECK(test::within_a_minute([&] {
    CHECK(tls.current() != nullptr);
    return warnings.text().find("has ended") != std::string::npos;
  }));
  const std::string before = warnings.text();
  tls.current();
  CHECK(warnings.text() == before);
}

TEST_CASE("a renewed certificate is served without a restart") {
  const TlsFiles files, renewed;
  EchoServer server(with_tls(files));
  TlsClient before(server.port(), files / "ca.pem");
  files.take(renewed);
  CHECK(test::within_a_minute([&] {
    try {
      TlsClient client(server.port(), renewed / "ca.pem");
      return client.ask(post_bytes("/echo", "new"), "new").find("200 OK") != std::string::npos;
    } catch (const std::runtime_error&) {
      return false;
    }
  }));
  CHECK_THAT(before.ask(post_bytes("/echo", "old"), "old"), Contains("200 OK"));
}

TEST_CASE("a pair of files that cannot be read anew keeps the earlier one, with one warning") {
  const TlsFiles files, others;
  const test::Warnings warnings;
  TlsContext tls(files / "server.pem", files / "server.key", 0ms);
  const auto* const first = tls.current();
  CHECK(tls.current() == first);
  files.write_private("server.pem", "no certificate");
  for (int i = 0; i < 3; ++i) CHECK(tls.current() == first);
  const std::string text = warnings.text();
  CHECK_THAT(text, Contains("the server continues with its earlier certificate: [serve, "
                            "certificate]"));
  CHECK(text.find('\n') == text.size() - 1);
  std::filesystem::remove(files / "server.key");
  for (int i = 0; i < 3; ++i) CHECK(tls.current() == first);
  const std::string more = warnings.text().substr(text.size());
  CHECK(std::count(more.begin(), more.end(), '\n') <= 1);
  files.take(others);
  CHECK(tls.current() != first);
  CHECK(TlsContext("", "", 0ms).current() == nullptr);
}

TEST_CASE("a key of another kind, or with a password, is one line at the start") {
  const TlsFiles files;
  const test::TlsKey rsa(EVP_RSA_gen(2048));
  HttpServerOptions options = with_tls(files);
  options.key = files / "made.key";
  const auto write = [&](const EVP_CIPHER* cipher) {
    const test::TlsMemory memory(BIO_new(BIO_s_mem()));
    REQUIRE(PEM_write_bio_PKCS8PrivateKey(memory.get(), rsa.get(), cipher, "word", cipher ? 4 : 0,
                                          nullptr, nullptr) == 1);
    char* text = nullptr;
    const auto size = BIO_get_mem_data(memory.get(), &text);
    files.write_private("made.key", std::string(text, static_cast<size_t>(size)));
  };
  write(nullptr);
  CHECK_THAT(refused(options), Contains("the key is that of the certificate"));
  write(EVP_aes_256_cbc());
  CHECK_THAT(refused(options), Contains("in PEM, without a password"));
}

TEST_CASE("the token is required under TLS, too") {
  const TlsFiles files;
  const std::string token(40, 't');
  EchoServer server(with_tls(files, {.token = token}));
  TlsClient stranger(server.port(), files / "ca.pem");
  const std::string refusal = stranger.ask(post_bytes("/echo", "x"), "");
  CHECK_THAT(refusal, Contains("HTTP/1.1 401") && Contains("WWW-Authenticate: Bearer"));
  CHECK(stranger.ended_well());
  TlsClient client(server.port(), files / "ca.pem");
  CHECK_THAT(client.ask("POST /echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token +
                            "\r\nContent-Length: 4\r\n\r\nmine",
                        "mine"),
             Contains("HTTP/1.1 200"));
}

TEST_CASE("plain HTTP, garbage and silence at the TLS port do not affect others") {
  const TlsFiles files;
  const test::Warnings warnings;
  EchoServer server(with_tls(files, {.read_timeout = 300ms}));
  HttpClient plain(server.port()), garbage(server.port()), silent(server.port());
  CHECK(plain.get("/echo").status == 0);
  garbage.send(std::string("\x16\x03\x01\xff\xff", 5) + std::string(70000, '\x7f'));
  TlsClient client(server.port(), files / "ca.pem");
  CHECK_THAT(client.ask(post_bytes("/echo", "well"), "well"), Contains("HTTP/1.1 200"));
  CHECK(garbage.read().status == 0);
  // Closed by the server, before the client times out.
  const auto begin = std::chrono::steady_clock::now();
  CHECK(silent.read(20).status == 0);
  CHECK(std::chrono::steady_clock::now() - begin < 15s);
  CHECK(warnings.text() == "");
}

TEST_CASE("connections without a handshake are closed for others, or rejected if too many") {
  const TlsFiles files;
  EchoServer server(with_tls(files, {.max_connections = 3}));
  std::vector<std::unique_ptr<HttpClient>> silent;
  for (int i = 0; i < 3; ++i) {
    silent.push_back(std::make_unique<HttpClient>(server.port(), "127.0.0.2"));
  }
  // Another client: the longest-waiting connection is closed.
  TlsClient client(server.port(), files / "ca.pem");
  CHECK_THAT(client.ask(post_bytes("/echo", "in"), "in"), Contains("HTTP/1.1 200"));
  CHECK(silent[0]->read(10).status == 0);
  // Now both clients would have the same number.
  TlsClient second(server.port(), files / "ca.pem");
  CHECK_THAT(second.read_until(""), Contains("HTTP/1.1 503"));
  CHECK(second.ended_well());
}

TEST_CASE("an early refusal is sent under TLS, too") {
  const TlsFiles files;
  EchoServer server(with_tls(files, {.max_body = 1000, .read_timeout = 300ms}));
  TlsClient large(server.port(), files / "ca.pem");
  CHECK_THAT(large.ask(post_bytes("/echo", std::string(100000, 'x')), ""),
             Contains("HTTP/1.1 413"));
  TlsClient slow(server.port(), files / "ca.pem");
  CHECK_THAT(slow.ask("POST /echo HTTP/1.1\r\nContent-Le", ""), Contains("HTTP/1.1 408"));
  CHECK(slow.ended_well());
}

TEST_CASE("a draining server answers pending requests under TLS without delay") {
  const TlsFiles files;
  EchoServer server(with_tls(files, {.drain_timeout = 20s}));
  TlsClient client(server.port(), files / "ca.pem");
  HttpClient silent(server.port());
  CHECK_THAT(client.ask(post_bytes("/echo", "first"), "first"), Contains("HTTP/1.1 200"));
  client.send(post_bytes("/slow", "last"));
  std::this_thread::sleep_for(50ms);
  const auto begin = std::chrono::steady_clock::now();
  server.stop();
  CHECK_THAT(client.read_until(""), Contains("HTTP/1.1 200") && Contains("last"));
  server.join();
  CHECK(std::chrono::steady_clock::now() - begin < 15s);
}

TEST_CASE("a token sent over the network in clear text is one line at the start") {
  const TlsFiles files;
  const HttpServerOptions open{.host = "0.0.0.0", .token = std::string(40, 't')};
  {
    const test::Warnings warnings;
    CHECK(refused(open) == "");
    CHECK_THAT(warnings.text(),
               Contains("[serve] listens beyond this host, at 0.0.0.0, without TLS: "
                        "the network can read the token"));
  }
  const test::Warnings warnings;
  CHECK(refused(with_tls(files, open)) == "");
  CHECK(warnings.text() == "");
}

}  // namespace tls_server_test
