#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>

namespace tessera::detail {

/// A connection with etcd, plain or under TLS, as a stream for the composed operations of Asio and
/// Beast. Used by etcd_gateway.cpp only.
class EtcdConnection {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using executor_type = Socket::executor_type;

  /// Makes a TLS stream, or a plain one if `context` is null.
  EtcdConnection(Socket&& socket, boost::asio::ssl::context* context) : socket_(std::move(socket)) {
    if (context != nullptr) tls_.emplace(socket_, *context);
  }

  executor_type get_executor() { return socket_.get_executor(); }
  Socket& socket() { return socket_; }
  boost::asio::ssl::stream<Socket&>* tls() { return tls_ ? &*tls_ : nullptr; }
  boost::beast::flat_buffer& buffer() { return buffer_; }
  bool used() const { return used_; }
  void set_used() { used_ = true; }

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
  boost::beast::flat_buffer buffer_;
  bool used_ = false;  ///< whether it has served a request
};

}  // namespace tessera::detail
