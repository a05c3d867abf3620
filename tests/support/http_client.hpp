#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::test {

/// An answer of an HTTP server; status 0 if the connection ended without one.
struct HttpAnswer {
  int status = 0;
  std::string head;  ///< status line and fields
  std::string body;
  bool keeps_open = false;
};

/// A connection to a server on this machine that sends any bytes at all.
class HttpClient {
 public:
  /// Connects, from another address of loopback if one is given. Throws std::runtime_error if it
  /// cannot.
  explicit HttpClient(int port, const std::string& from = "127.0.0.1");
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Sends bytes; false once the server has closed.
  bool send(std::string_view bytes);
  /// Tells the server that no more will come.
  void finish();
  /// Reads one answer; status 0 if none has come within `seconds`.
  HttpAnswer read(double seconds = 10);
  /// The same for an answer to HEAD, which has no body.
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

/// The bytes of a POST request with its length.
std::string post_bytes(const std::string& target, const std::string& body);

/// One request on a connection of its own.
HttpAnswer http_ask(int port, std::string_view bytes);
HttpAnswer http_post(int port, const std::string& target, const std::string& body);
HttpAnswer http_get(int port, const std::string& target);

}  // namespace tessera::test
