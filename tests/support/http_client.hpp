#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::test {

/// An HTTP server's answer; status 0 if the connection ended without one.
struct HttpAnswer {
  int status = 0;
  std::string head;  ///< status line and header fields
  std::string body;
  bool keeps_open = false;
};

/// A connection to a server on this machine that can send arbitrary bytes.
class HttpClient {
 public:
  /// Connects, optionally from another loopback address. Throws std::runtime_error on failure.
  explicit HttpClient(int port, const std::string& from = "127.0.0.1");
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Sends bytes; returns false once the server has closed.
  bool send(std::string_view bytes);
  /// Closes the sending side.
  void finish();
  /// Reads one answer; status 0 if none arrives within `seconds`.
  HttpAnswer read(double seconds = 10);
  /// Reads an answer to HEAD, which has no body.
  HttpAnswer read_head(double seconds = 10);
  HttpAnswer ask(std::string_view bytes, double seconds = 10);
  HttpAnswer post(const std::string& target, const std::string& body);
  HttpAnswer get(const std::string& target);

 private:
  bool receive(double seconds);
  bool receive_until(std::chrono::steady_clock::time_point end);

  int socket_ = -1;
  std::string received_;
};

/// Returns the bytes of a POST request with its Content-Length.
std::string post_bytes(const std::string& target, const std::string& body);

/// Sends one request on a new connection.
HttpAnswer http_ask(int port, std::string_view bytes);
HttpAnswer http_post(int port, const std::string& target, const std::string& body);
HttpAnswer http_get(int port, const std::string& target);

}  // namespace tessera::test
