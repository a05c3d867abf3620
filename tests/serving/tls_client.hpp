#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "tests/serving/tls_files.hpp"

namespace tessera::test {

/// An HTTP client over TLS that trusts a single authority.
class TlsClient {
 public:
  /// Throws std::runtime_error with OpenSSL's reason if the server is not trusted.
  TlsClient(int port, const std::string& authority, int newest_version = TLS1_3_VERSION,
            const char* ciphers = "ALL")
      : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_max_proto_version(context_.get(), newest_version);
    // Allows old versions of TLS, too.
    SSL_CTX_set_security_level(context_.get(), 0);
    if (SSL_CTX_set_cipher_list(context_.get(), ciphers) != 1) fail();
    if (SSL_CTX_load_verify_locations(context_.get(), authority.c_str(), nullptr) != 1) fail();
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    const timeval patience{10, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail();
    tls_.reset(SSL_new(context_.get()));
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls_.get()), "127.0.0.1");
    SSL_set_fd(tls_.get(), socket_);
    if (SSL_connect(tls_.get()) != 1) fail();
  }
  ~TlsClient() {
    tls_.reset();
    if (socket_ >= 0) ::close(socket_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  std::string version() const { return SSL_get_version(tls_.get()); }

  bool send(const std::string& bytes) {
    return SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
  }

  /// Reads until `end`, or until the server closes the stream.
  std::string read_until(const std::string& end) {
    std::string text;
    while (end.empty() || text.find(end) == std::string::npos) {
      char part[4096];
      const int size = SSL_read(tls_.get(), part, sizeof part);
      if (size <= 0) {
        ended_well_ = SSL_get_error(tls_.get(), size) == SSL_ERROR_ZERO_RETURN;
        break;
      }
      text.append(part, static_cast<size_t>(size));
    }
    return text;
  }

  std::string ask(const std::string& bytes, const std::string& end) {
    send(bytes);
    return read_until(end);
  }

  /// Whether the server closed the stream properly, rather than cutting it off.
  bool ended_well() const { return ended_well_; }

 private:
  [[noreturn]] void fail() {
    char text[256];
    ERR_error_string_n(ERR_peek_last_error(), text, sizeof text);
    ERR_clear_error();
    tls_.reset();
    if (socket_ >= 0) ::close(socket_);
    throw std::runtime_error(text);
  }

  std::unique_ptr<SSL_CTX, OpenSslFreed<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, OpenSslFreed<SSL_free>> tls_;
  int socket_ = -1;
  bool ended_well_ = false;
};

}  // namespace tessera::test
