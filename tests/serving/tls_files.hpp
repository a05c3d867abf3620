#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "tests/support/files.hpp"

namespace tessera::test {

template <auto Free>
struct OpenSslFreed {
  template <class Object>
  void operator()(Object* object) const {
    Free(object);
  }
};
using TlsKey = std::unique_ptr<EVP_PKEY, OpenSslFreed<EVP_PKEY_free>>;
using TlsCertificate = std::unique_ptr<X509, OpenSslFreed<X509_free>>;
using TlsMemory = std::unique_ptr<BIO, OpenSslFreed<BIO_free>>;

/// How long certificates of TlsFiles hold by default, in seconds.
inline constexpr int64_t ninety_days = int64_t{90} * 86400;

/// A test authority and a server certificate for 127.0.0.1 that it has signed, as PEM files of a
/// folder: "ca.pem", "server.pem", "server.key", and an unrelated "other.key".
class TlsFiles {
 public:
  /// Makes files whose server certificate ends in `seconds`, which may be negative.
  explicit TlsFiles(int64_t seconds = ninety_days) {
    const TlsKey authority = make_key(), server = make_key(), other = make_key();
    const TlsCertificate root =
        certificate("the authority", *authority, nullptr, *authority, ninety_days);
    const TlsCertificate leaf = certificate("127.0.0.1", *server, root.get(), *authority, seconds);
    write("ca.pem", [&](BIO* out) { return PEM_write_bio_X509(out, root.get()); });
    write("server.pem", [&](BIO* out) { return PEM_write_bio_X509(out, leaf.get()); });
    write_key("server.key", *server);
    write_key("other.key", *other);
  }
  std::string operator/(const std::string& name) const { return folder_ / name; }

  /// Writes a file that only its owner can read. Replaces it, as renewals do, by a rename.
  void write_private(const std::string& name, const std::string& text) const {
    write_file(folder_ / "new", text);
    std::filesystem::permissions(
        folder_ / "new", std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    std::filesystem::rename(folder_ / "new", folder_ / name);
  }
  /// Replaces the server's certificate and key by those of other files.
  void take(const TlsFiles& others) const {
    for (const char* name : {"server.pem", "server.key"}) {
      write_private(name, read_file(others / name));
    }
  }

 private:
  static void check(bool ok) {
    if (!ok) throw std::runtime_error("OpenSSL makes no certificate");
  }

  static TlsKey make_key() {
    TlsKey key(EVP_EC_gen("P-256"));
    check(key != nullptr);
    return key;
  }

  static void extend(X509& certificate, X509* issuer, int kind, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer ? issuer : &certificate, &certificate, nullptr, nullptr, 0);
    X509_EXTENSION* const made = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
    check(made != nullptr && X509_add_ext(&certificate, made, -1) == 1);
    X509_EXTENSION_free(made);
  }

  /// Without an issuer the certificate is a self-signed authority.
  static TlsCertificate certificate(const char* name, EVP_PKEY& key, X509* issuer, EVP_PKEY& signer,
                                    int64_t seconds) {
    TlsCertificate made(X509_new());
    const auto* text = reinterpret_cast<const unsigned char*>(name);
    X509_NAME* const subject = X509_get_subject_name(made.get());
    check(X509_set_version(made.get(), X509_VERSION_3) == 1 &&
          ASN1_INTEGER_set(X509_get_serialNumber(made.get()), issuer ? 2 : 1) == 1 &&
          X509_gmtime_adj(X509_getm_notBefore(made.get()), -ninety_days) != nullptr &&
          X509_gmtime_adj(X509_getm_notAfter(made.get()), seconds) != nullptr &&
          X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, text, -1, -1, 0) == 1 &&
          X509_set_issuer_name(made.get(), issuer ? X509_get_subject_name(issuer) : subject) == 1 &&
          X509_set_pubkey(made.get(), &key) == 1);
    if (issuer) extend(*made, issuer, NID_subject_alt_name, "IP:127.0.0.1");
    if (!issuer) extend(*made, issuer, NID_basic_constraints, "critical,CA:TRUE");
    check(X509_sign(made.get(), &signer, EVP_sha256()) > 0);
    return made;
  }

  template <class Write>
  void write(const std::string& name, const Write& fill) const {
    const TlsMemory memory(BIO_new(BIO_s_mem()));
    check(memory != nullptr && fill(memory.get()) == 1);
    char* text = nullptr;
    const auto size = BIO_get_mem_data(memory.get(), &text);
    write_private(name, std::string(text, static_cast<size_t>(size)));
  }

  void write_key(const std::string& name, EVP_PKEY& key) const {
    write(name, [&key](BIO* out) {
      return PEM_write_bio_PrivateKey(out, &key, nullptr, nullptr, 0, nullptr, nullptr);
    });
  }

  TempFolder folder_;
};

}  // namespace tessera::test
