#include <tessera/framework/serving/http/tls_context.hpp>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <array>
#include <ctime>
#include <iostream>
#include <utility>

#include <boost/asio/buffer.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/secret.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

namespace ssl = boost::asio::ssl;

constexpr uint64_t max_pem_bytes = 1 << 20;
constexpr int days_of_warning = 14;
// TLS 1.2 with forward secrecy and authenticated encryption only; those of 1.3 all have both.
constexpr const char* ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

/// Returns OpenSSL's reason for an error, such as "ee key too small".
std::string reason_of(const boost::system::error_code& error) {
  const unsigned long last = ERR_peek_last_error();
  const char* reason =
      ERR_reason_error_string(last != 0 ? last : static_cast<unsigned long>(error.value()));
  ERR_clear_error();
  return reason != nullptr ? reason : error.message();
}

void use_certificate(ssl::context& context, const std::string& path) {
  const std::string pem = read_file(path, max_pem_bytes);
  boost::system::error_code error;
  context.use_certificate_chain(boost::asio::buffer(pem), error);
  if (!error) return;
  throw ConfigError("serve, certificate",
                    "the file holds certificates in PEM that OpenSSL accepts, the server's first",
                    str(in_quotes(path), ": ", reason_of(error)),
                    "name the full chain, such as fullchain.pem");
}

void use_key(ssl::context& context, const std::string& path) {
  const std::string pem = read_private_file("serve, key", path, max_pem_bytes);
  boost::system::error_code error;
  context.use_private_key(boost::asio::buffer(pem), ssl::context::pem, error);
  const bool other =
      ERR_GET_REASON(static_cast<unsigned long>(error.value())) == X509_R_KEY_VALUES_MISMATCH;
  if (error && !other) {
    throw ConfigError("serve, key", "the file holds a private key in PEM, without a password",
                      str(in_quotes(path), ": ", reason_of(error)),
                      "name the key, such as privkey.pem");
  }
  // A key of another type than the certificate's is detected only here.
  if (!error && SSL_CTX_check_private_key(context.native_handle()) == 1) return;
  ERR_clear_error();
  throw ConfigError("serve, key", "the key is that of the certificate",
                    "another one, in " + in_quotes(path), "name the key that belongs to it");
}

std::shared_ptr<ssl::context> make_context(const std::string& certificate, const std::string& key) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(native, ciphers);
  SSL_CTX_set_options(
      native, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Session tickets suffice; the server keeps no session state.
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  // An encrypted key must not prompt on the terminal.
  context->set_password_callback([](size_t, ssl::context::password_purpose) { return ""; });
  use_certificate(*context, certificate);
  use_key(*context, key);
  ERR_clear_error();
  return context;
}

const ASN1_TIME* end_of(ssl::context& context) {
  return X509_get0_notAfter(SSL_CTX_get0_certificate(context.native_handle()));
}

/// Returns the days left until a time, rounded down; negative once it has passed.
int days_until(const ASN1_TIME* end) {
  int days = 0, seconds = 0;
  ASN1_TIME_diff(&days, &seconds, nullptr, end);
  return days - (seconds < 0 ? 1 : 0);
}

std::string text_of(const ASN1_TIME* time) {
  std::tm parts{};
  ASN1_TIME_to_tm(time, &parts);
  std::array<char, 32> text{};
  const size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &parts);
  return {text.data(), size};
}

/// Throws ConfigError if the certificate has ended.
void check_not_ended(ssl::context& context, const std::string& path) {
  if (days_until(end_of(context)) >= 0) return;
  throw ConfigError("serve, certificate", "the certificate has not ended",
                    str(in_quotes(path), ", which ended on ", text_of(end_of(context))),
                    "renew it");
}

void warn_of_tls(const std::string& text) {
  std::cerr << "Warning: " << text << '\n' << std::flush;
}

}  // namespace

TlsContext::TlsContext(std::string certificate, std::string key, std::chrono::milliseconds interval)
    : certificate_(std::move(certificate)), key_(std::move(key)), interval_(interval) {
  if (certificate_.empty() && key_.empty()) return;
  if (certificate_.empty() || key_.empty()) {
    throw ConfigError("serve", "a certificate and its key are given together",
                      certificate_.empty() ? "a key alone" : "a certificate alone",
                      "give both, or none to listen without TLS");
  }
  signature_ = signature();
  read();
  looked_ = Clock::now();
}

ssl::context* TlsContext::current() {
  if (context_ == nullptr || Clock::now() < looked_ + interval_) return context_.get();
  looked_ = Clock::now();
  check_end();
  std::string now = signature();
  if (now == signature_) return context_.get();
  signature_ = std::move(now);
  try {
    read();
  } catch (const std::exception& error) {
    warn_of_tls(str("the server continues with its earlier certificate: ", error.what()));
  }
  return context_.get();
}

std::string TlsContext::signature() const {
  std::string text;
  for (const std::string& path : {certificate_, key_}) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) info = {};
    text += str(info.st_ino, ' ', info.st_size, ' ', info.st_mtim.tv_sec, '.', info.st_mtim.tv_nsec,
                ' ', info.st_ctim.tv_sec, '.', info.st_ctim.tv_nsec, '\n');
  }
  return text;
}

void TlsContext::read() {
  std::shared_ptr<ssl::context> context = make_context(certificate_, key_);
  check_not_ended(*context, certificate_);
  context_ = std::move(context);
  warned_ = 0;
  check_end();
}

/// Warns once if the certificate ends soon, and once more when it has ended.
void TlsContext::check_end() {
  const ASN1_TIME* const end = end_of(*context_);
  const int days = days_until(end);
  const int due = days < 0 ? 2 : days < days_of_warning ? 1 : 0;
  if (due <= warned_) return;
  warned_ = due;
  warn_of_tls(str("[serve, certificate] the certificate ", due == 2 ? "has ended" : "ends soon",
                  ". Received: ", in_quotes(certificate_), ", which ",
                  due == 2 ? "ended on " : "ends on ", text_of(end),
                  ". To fix: renew it; the server reads the new one without a restart."));
}

}  // namespace tessera::detail
