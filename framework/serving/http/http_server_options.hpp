#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tessera {

/// The options of a server's connections.
struct HttpServerOptions {
  std::string host = "127.0.0.1";  ///< an address of this machine
  int64_t port = 0;                ///< 0: a free one
  /// Token that requests must send as "Authorization: Bearer TOKEN", at least 32 characters; others
  /// get status 401. Empty (default): no token is needed.
  std::string token = {};
  /// PEM files of the certificate chain, the server's first, and of its key, for TLS 1.2 or newer.
  /// Both are read anew when they change. Empty (default): no TLS.
  std::string certificate = {};
  std::string key = {};        ///< PEM file of the private key, which nobody else may read
  bool insecure = false;       ///< whether it may listen beyond loopback without a token
  int64_t max_header = 8192;   ///< maximum bytes of a request's first line and header fields
  int64_t max_body = 1 << 20;  ///< maximum bytes of a body
  /// Maximum number of connections. When full, the longest-idle connection of the client with the
  /// most connections is closed if the new client would still have fewer than it; otherwise the new
  /// connection gets status 503.
  int64_t max_connections = 256;
  std::chrono::milliseconds read_timeout{10000};  ///< timeout of a TLS handshake, header or body
  std::chrono::milliseconds idle_timeout{60000};  ///< timeout between two requests
  /// Maximum time to answer a request, then status 504; 0: unlimited.
  std::chrono::milliseconds response_timeout{60000};
  std::chrono::milliseconds drain_timeout{5000};  ///< time for open requests after stop()
  bool signals = false;     ///< whether SIGTERM and SIGINT end run(), and SIGPIPE is ignored
  bool access_log = false;  ///< whether to log each response to standard error
};

}  // namespace tessera
