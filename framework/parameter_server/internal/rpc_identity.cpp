#include <tessera/framework/parameter_server/internal/rpc_identity.hpp>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <new>

#include <tessera/framework/cluster/internal/job_secret.hpp>

namespace tessera::detail {

namespace {

template <auto Free>
struct Freed {
  template <class Object>
  void operator()(Object* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Memory = std::unique_ptr<BIO, Freed<BIO_free>>;

/// The calls checked here can only fail for lack of memory.
void check(bool ok) {
  if (!ok) throw std::bad_alloc();
}

/// Derives an Ed25519 key: any 32 bytes are a valid key, and signatures are deterministic.
Key key_of(const std::string& secret) {
  const std::string seed = proof_of(secret, {"parameter server: key"});
  Key key(EVP_PKEY_new_raw_private_key(
      EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(seed.data()), seed.size()));
  check(key != nullptr);
  return key;
}

/// Returns a self-signed certificate without anything that could differ between processes.
Certificate certificate_of(EVP_PKEY& key) {
  Certificate certificate(X509_new());
  check(certificate != nullptr);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  const auto* text = reinterpret_cast<const unsigned char*>(identity_name);
  check(X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
        ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1) == 1 &&
        ASN1_TIME_set_string(X509_getm_notBefore(certificate.get()), "20000101000000Z") == 1 &&
        ASN1_TIME_set_string(X509_getm_notAfter(certificate.get()), "99991231235959Z") == 1 &&
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0) == 1 &&
        X509_set_issuer_name(certificate.get(), name) == 1 &&
        X509_set_pubkey(certificate.get(), &key) == 1 &&
        X509_sign(certificate.get(), &key, nullptr) > 0);
  return certificate;
}

template <class Write>
std::string pem(const Write& write) {
  const Memory memory(BIO_new(BIO_s_mem()));
  check(memory != nullptr && write(memory.get()) == 1);
  char* text = nullptr;
  const auto size = BIO_get_mem_data(memory.get(), &text);
  return {text, static_cast<size_t>(size)};
}

}  // namespace

RpcIdentity identity_of(const std::string& secret) {
  const Key key = key_of(secret);
  const Certificate certificate = certificate_of(*key);
  return {pem([&](BIO* out) {
            return PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          }),
          pem([&](BIO* out) { return PEM_write_bio_X509(out, certificate.get()); })};
}

}  // namespace tessera::detail
