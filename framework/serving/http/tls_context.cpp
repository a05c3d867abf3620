#include <tessera/framework/serving/http/tls_context.hpp>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <boost/asio/buffer.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

namespace ssl = boost::asio::ssl;

constexpr uint64_t max_pem_bytes = 1 << 20;

void use_certificate(ssl::context& context, const std::string& path) {
  const std::string pem = read_file(path, max_pem_bytes);
  boost::system::error_code error;
  context.use_certificate_chain(boost::asio::buffer(pem), error);
  if (!error) return;
  throw ConfigError("serve, certificate", "the file holds certificates in PEM, the server's first",
                    in_quotes(path), "name the full chain, such as fullchain.pem");
}

void use_key(ssl::context& context, const std::string& path) {
  const std::string pem = read_file(path, max_pem_bytes);
  boost::system::error_code error;
  context.use_private_key(boost::asio::buffer(pem), ssl::context::pem, error);
  const bool other =
      ERR_GET_REASON(static_cast<unsigned long>(error.value())) == X509_R_KEY_VALUES_MISMATCH;
  if (error && !other) {
    throw ConfigError("serve, key", "the file holds a private key in PEM, without a password",
                      in_quotes(path), "name the key, such as privkey.pem");
  }
  // A key of another type than the certificate's is detected only here.
  if (!error && SSL_CTX_check_private_key(context.native_handle()) == 1) return;
  throw ConfigError("serve, key", "the key is that of the certificate",
                    "another one, in " + in_quotes(path), "name the key that belongs to it");
}

}  // namespace

std::shared_ptr<ssl::context> make_tls_context(const std::string& certificate,
                                               const std::string& key) {
  if (certificate.empty() && key.empty()) return nullptr;
  if (certificate.empty() || key.empty()) {
    throw ConfigError("serve", "a certificate and its key are given together",
                      certificate.empty() ? "a key alone" : "a certificate alone",
                      "give both, or none to listen without TLS");
  }
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
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

}  // namespace tessera::detail
