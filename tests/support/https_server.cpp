#include "tests/support/https_server.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace tessera::test {

namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using File = std::unique_ptr<FILE, decltype(&std::fclose)>;

/// Writes a key and a self-signed certificate for 127.0.0.1, valid for an hour.
void write_certificate(const std::string& certificate_path, const std::string& key_path) {
  const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const Certificate certificate(X509_new(), &X509_free);
  X509* x509 = certificate.get();
  X509_set_version(x509, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
  X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
  X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
  X509_set_pubkey(x509, key.get());
  X509_NAME* name = X509_get_subject_name(x509);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("127.0.0.1"), -1, -1, 0);
  X509_set_issuer_name(x509, name);
  X509_EXTENSION* address =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
  X509_add_ext(x509, address, -1);
  X509_EXTENSION_free(address);
  X509_sign(x509, key.get(), EVP_sha256());
  const File out(std::fopen(certificate_path.c_str(), "w"), &std::fclose);
  const File key_out(std::fopen(key_path.c_str(), "w"), &std::fclose);
  if (!out || !key_out || PEM_write_X509(out.get(), x509) != 1 ||
      PEM_write_PrivateKey(key_out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    throw std::runtime_error("cannot write " + certificate_path);
  }
}

}  // namespace

HttpsServer::HttpsServer(const std::string& content) {
  write_certificate(ca_file(), folder_ / "key.pem");
  std::filesystem::create_directory(folder());
  write_file(folder() / "file", content);
  write_file(folder_ / "log", "");
  start();
}

HttpsServer::~HttpsServer() {
  ::close(input_);
  ::waitpid(process_, nullptr, 0);
}

void HttpsServer::start() {
  std::vector<std::string> words = {
      "python3", "-B", std::string(TESSERA_TEST_DIR) + "/support/https_server.py", ca_file()};
  for (const char* name : {"key.pem", "files", "log"}) words.push_back(folder_ / name);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<int, 2> to{};
  std::array<int, 2> from{};
  if (::pipe2(to.data(), O_CLOEXEC) != 0 || ::pipe2(from.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], 0);
  posix_spawn_file_actions_adddup2(&actions, from[1], 1);
  const int failed =
      posix_spawnp(&process_, "python3", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(to[0]);
  ::close(from[1]);
  input_ = to[1];
  const File answer(::fdopen(from[0], "r"), &std::fclose);
  if (failed != 0 || std::fscanf(answer.get(), "%d", &port_) != 1)
    throw std::runtime_error("the https server did not start");
}

std::string HttpsServer::url(const std::string& behaviour, const std::string& name) const {
  return "https://127.0.0.1:" + std::to_string(port_) + "/" + behaviour + name;
}

std::vector<std::string> HttpsServer::requests() const {
  std::istringstream text(read_file(folder_ / "log"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

}  // namespace tessera::test
