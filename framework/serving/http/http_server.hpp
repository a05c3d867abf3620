#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tessera::detail {

/// A request that was read whole.
struct HttpRequest {
  std::string method;
  std::string target;
  std::string body;
};

/// What a request is answered with; the body is JSON.
struct HttpResponse {
  int status = 200;
  std::string body;
  std::string allow = "";  ///< methods, for status 405
};

/// Takes the one answer to a request; may be called from any thread while the server lives.
using HttpRespond = std::function<void(HttpResponse)>;

/// What a server serves. All are called on the thread of HttpServer::run().
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  /// The refusal of a method and target, given before the body is read; nothing to go on.
  virtual std::optional<HttpResponse> refuse(const std::string& method,
                                             const std::string& target) = 0;
  /// Answers a request, now or later. An exception becomes status 500.
  virtual void handle(HttpRequest&& request, HttpRespond respond) = 0;
  /// Told once that the server drains: what was asked is to be answered soon.
  virtual void drain() {}
};

struct HttpServerOptions {
  std::string host = "127.0.0.1";  ///< an address of this machine
  int64_t port = 0;                ///< 0: a free one
  /// What requests carry as "Authorization: Bearer TOKEN", 32 characters at least; others get
  /// status 401. Empty: anybody may ask.
  std::string token = {};
  /// PEM files of the certificates, the server's first, and of its key: connections are under TLS
  /// of version 1.2 or newer. Empty: they are plain.
  std::string certificate = {};
  std::string key = {};
  bool insecure = false;       ///< whether without a token it may listen beyond this host
  int64_t max_header = 8192;   ///< bytes of a request's first line and fields
  int64_t max_body = 1 << 20;  ///< bytes
  /// More are answered with status 503; but before a client has more of them than another one, its
  /// connection that has asked for nothing for longest makes room.
  int64_t max_connections = 256;
  std::chrono::milliseconds read_timeout{10000};  ///< for TLS, a header, a body each
  std::chrono::milliseconds idle_timeout{60000};  ///< between two requests
  std::chrono::milliseconds drain_timeout{5000};  ///< for the requests under way at the end
  bool signals = false;     ///< whether SIGTERM and SIGINT end run(), and SIGPIPE is ignored
  bool access_log = false;  ///< whether each answer is a line on the standard error
};

/// An HTTP/1.1 server for JSON on one thread, under TLS or not, made for networks that cannot be
/// trusted. Answers by itself, with {"error": "..."} and closing the connection: 401 for another
/// token, 400 for what is not HTTP, 408 for a client that is slow, 411 for a body of no stated
/// length, 413 and 431 for one or a header that is too large, 415 for a body that is compressed or
/// of another type than JSON, plain text or a form (as `curl -d` sends JSON), 503 for too many
/// connections.
class HttpServer {
 public:
  /// Listens at once. The handler must outlive the server. Throws ConfigError if it cannot, and for
  /// an address beyond loopback without a token, unless it was told to, and for a certificate or
  /// key that is none; FileError for one that cannot be read. Says so on the standard error if a
  /// token crosses the network in clear.
  HttpServer(const HttpServerOptions& options, HttpHandler& handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// The port it listens on.
  int port() const;
  /// Serves until stop() or a signal, then drains: takes no more connections, answers what was
  /// asked already, and closes. A second signal ends it at once.
  void run();
  /// Makes run() drain and return; from any thread.
  void stop();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace tessera::detail
