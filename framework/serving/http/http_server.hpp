#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include <tessera/framework/serving/http/http_server_options.hpp>

namespace tessera::detail {

/// A complete request.
struct HttpRequest {
  std::string method;
  std::string target;
  std::string body;
  /// Identifies the client: its address, or the /64 network of an IPv6 one.
  std::string client = {};
  /// Stops once nobody waits for the response any more: the client has hung up, or has received
  /// status 504.
  std::stop_token abandoned = {};
};

/// The response to a request; the body is JSON.
struct HttpResponse {
  int status = 200;
  std::string body;
  std::string allow = "";  ///< value of the Allow header, for status 405
};

/// Returns a response with one line of text, cut if it is long, as TensorFlow Serving's error.
HttpResponse error_response(int status, const std::string& text);

/// Returns the response to a request that was abandoned: status 499, as nginx' log has it. Only a
/// client that closed the sending side of its connection can read it.
HttpResponse abandoned_response();

/// Sends the response to a request. Called once, from any thread, while the server exists.
using HttpRespond = std::function<void(HttpResponse)>;

/// Interface of the application behind a server. All functions are called on the thread of
/// HttpServer::run().
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  /// Returns an error response to a method and target before the body is read, or nothing to
  /// continue.
  virtual std::optional<HttpResponse> refuse(const std::string& method,
                                             const std::string& target) = 0;
  /// Answers a request, now or later; soon if it is abandoned. An exception becomes status 500.
  virtual void handle(HttpRequest&& request, HttpRespond respond) = 0;
  /// Called once when the server begins to drain: pending requests should be answered soon.
  virtual void drain() {}
};

/// A single-threaded HTTP/1.1 server for JSON, optionally under TLS, for untrusted networks. Errors
/// that it detects itself are answered with {"error": "..."} and close the connection: 400 for
/// invalid HTTP, 401 for a wrong token, 408 for a client that is too slow, 411 for a body without
/// Content-Length, 413 for a body and 431 for a header that is too large, 415 for a body that is
/// compressed or not of type JSON, plain text or form (which `curl -d` sends), 503 for too many
/// connections, 504 for a handler that has not answered in time.
class HttpServer {
 public:
  /// Starts listening. The handler must outlive the server. Warns on standard error if a token
  /// would cross the network in clear text. Throws ConfigError if it cannot listen, for an address
  /// beyond loopback without a token unless `insecure`, and for an invalid certificate or key;
  /// FileError if one of these cannot be read.
  HttpServer(const HttpServerOptions& options, HttpHandler& handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Returns the port that it listens on.
  int port() const;
  /// Serves until stop() or a signal, then drains: accepts no more connections, answers pending
  /// requests, and closes. A second signal ends it at once.
  void run();
  /// Makes run() drain and return. Thread-safe.
  void stop();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace tessera::detail
