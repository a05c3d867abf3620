#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/files.hpp"

namespace tessera::test {

/// A local https server for files, in a process of its own (https_server.py), with a certificate
/// made for it.
class HttpsServer {
 public:
  /// Serves `content` as "file". Throws std::runtime_error if it does not start.
  explicit HttpsServer(const std::string& content = "");
  ~HttpsServer();
  HttpsServer(const HttpsServer&) = delete;
  HttpsServer& operator=(const HttpsServer&) = delete;

  /// What lies in here is served under its name.
  std::filesystem::path folder() const { return folder_ / "files"; }
  /// Address of "file", or the folder's where `name` is empty, under a behaviour: "good",
  /// "norange", "short", "unsized", "slow", "stall", "redirect", "downgrade" or "missing".
  std::string url(const std::string& behaviour, const std::string& name = "/file") const;
  /// The certificate, to trust it.
  std::string ca_file() const { return folder_ / "certificate.pem"; }
  /// The requests so far, as "GET /path range".
  std::vector<std::string> requests() const;

 private:
  void start();

  TempFolder folder_;
  pid_t process_ = 0;
  int input_ = -1;
  int port_ = 0;
};

}  // namespace tessera::test
