#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <tessera/framework/serving/http/http_server.hpp>
#include <tessera/framework/serving/http/http_stream.hpp>

namespace tessera::detail {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;

class HttpSession;

/// State that sessions share with their server.
struct HttpShared {
  HttpServerOptions options;
  HttpHandler* handler = nullptr;
  boost::asio::ssl::context* tls = nullptr;  ///< context of the next connection; null: no TLS
  bool draining = false;
  std::function<void(HttpSession*)> ended = {};
  /// Called when a request is being handled and has no response yet.
  std::function<void()> handling = {};
};

/// One connection, which handles its requests one after the other. Used by http_server.cpp only, on
/// the server's thread.
class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(tcp::socket&& socket, HttpShared& shared);

  /// Starts to read requests.
  void start();
  /// Answers with an error at once, without reading.
  void reject(int status, const std::string& text);
  /// Closes an idle connection soon, a busy one after its response.
  void drain();
  /// Closes the connection now.
  void close();
  /// Returns whether the connection was accepted, not rejected.
  bool served() const { return served_; }
  /// Identifies the client: an IPv4 address, or the /64 network of an IPv6 one, since a single IPv6
  /// client has more addresses than there are connections.
  const std::string& client() const { return client_; }
  /// Stops the request that is being handled if its client has hung up. Returns whether it is to be
  /// asked again. Called at intervals; requests shorter than one cost no system call.
  bool notice_hang_up();
  /// Returns since when it has been waiting for (the rest of) a request; nothing while it responds.
  std::optional<std::chrono::steady_clock::time_point> waiting_since() const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase : uint8_t {
    handshake,
    idle,
    header,
    body,
    handling,
    writing,
    lingering,
    closed
  };

  void enter(Phase phase, std::chrono::milliseconds limit);
  void tick();
  void expire();
  void secure(const std::function<void()>& next);
  void wait_for_request();
  void read_header();
  void on_header();
  /// Returns whether the request has the token, or none is needed.
  bool has_token() const;
  void read_body();
  void on_read(error_code error);
  void on_request();
  void refuse(int status, const std::string& text);
  void answer(HttpResponse response, bool close_after);
  void write(bool close_after);
  void linger();
  void half_close();
  void discard();

  HttpStream stream_;
  HttpShared& shared_;
  boost::asio::steady_timer timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> response_;
  std::function<void(uint64_t, boost::beast::string_view, error_code&)> on_chunk_;
  Phase phase_ = Phase::idle;
  Clock::time_point deadline_;
  Clock::time_point waits_;  ///< since when it has been waiting for a request
  std::string client_;
  std::stop_source abandoned_;  ///< stops every request of the connection
  std::string line_;            ///< the request's method and target, for the log
  bool served_ = false;
  bool head_ = false;
  bool timed_out_ = false;
  bool noticed_ = false;  ///< whether notice_hang_up() has met this request before
  bool first_ = true;
  int64_t chunks_ = 0;
  int64_t discarded_ = 0;
};

}  // namespace tessera::detail
