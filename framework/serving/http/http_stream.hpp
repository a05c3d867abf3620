#pragma once

#include <optional>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

namespace tessera::detail {

/// A connection, plain or under TLS, as a stream for the composed operations of Asio and Beast.
/// Used by http_session only.
class HttpStream {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using executor_type = Socket::executor_type;

  /// Makes a TLS stream, or a plain one if `context` is null.
  HttpStream(Socket&& socket, boost::asio::ssl::context* context) : socket_(std::move(socket)) {
    if (context != nullptr) tls_.emplace(socket_, *context);
  }

  executor_type get_executor() { return socket_.get_executor(); }
  /// Returns the socket below TLS.
  Socket& socket() { return socket_; }
  bool is_encrypted() const { return tls_.has_value(); }

  /// Performs the TLS handshake. Requires is_encrypted().
  template <class Handler>
  void async_handshake(Handler&& handler) {
    tls_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Handler>(handler));
  }
  /// Sends close_notify and waits for the client's. Requires is_encrypted().
  template <class Handler>
  void async_shutdown(Handler&& handler) {
    tls_->async_shutdown(std::forward<Handler>(handler));
  }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_read_some(buffers, std::forward<Handler>(handler));
    socket_.async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_write_some(buffers, std::forward<Handler>(handler));
    socket_.async_write_some(buffers, std::forward<Handler>(handler));
  }

 private:
  Socket socket_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
};

}  // namespace tessera::detail
