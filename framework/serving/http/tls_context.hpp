#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <boost/asio/ssl/context.hpp>

namespace tessera::detail {

/// The certificate and key of a server for TLS 1.2 or newer, from two PEM files, the certificate
/// chain and its key. Reads them anew when they change. Not thread-safe.
class TlsContext {
 public:
  /// Reads the files; both paths empty: no TLS. Warns on standard error about a certificate that
  /// ends soon. Throws FileError for a file that cannot be read, ConfigError for an invalid file, a
  /// key that others may read or that does not match the certificate, a certificate that has ended,
  /// or only one of the two.
  TlsContext(std::string certificate, std::string key,
             std::chrono::milliseconds interval = std::chrono::seconds(1));

  /// Returns the context of the next connection; null without TLS. If the files have changed since
  /// the last look, at least `interval` ago, reads them anew; if that fails, warns once and keeps
  /// the earlier context.
  boost::asio::ssl::context* current();

 private:
  using Clock = std::chrono::steady_clock;

  /// Returns inodes, sizes and times of the files, as a text that differs once one changes.
  std::string signature() const;
  void read();
  void check_end();

  std::string certificate_, key_;
  std::chrono::milliseconds interval_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::string signature_;
  Clock::time_point looked_;
  int warned_ = 0;  ///< 1: that the certificate ends soon, 2: that it has ended
};

}  // namespace tessera::detail
