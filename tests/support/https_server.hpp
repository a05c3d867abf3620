#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/files.hpp"

namespace tessera::test {

/// A local HTTPS file server in a separate process (https_server.py), with its own certificate.
class HttpsServer {
 public:
  /// Serves `content` as "file". Throws std::runtime_error if it does not start.
  explicit HttpsServer(const std::string& content = "");
  ~HttpsServer();
  HttpsServer(const HttpsServer&) = delete;
  HttpsServer& operator=(const HttpsServer&) = delete;

  /// Returns the folder whose files are served under their names.
  std::filesystem::path folder() const { return folder_ / "files"; }
  /// Returns the address of "file", or of the folder if `name` is empty, under a behaviour: "good",
  /// "norange", "short", "unsized", "slow", "stall", "redirect", "downgrade" or "missing".
  std::string url(const std::string& behaviour, const std::string& name = "/file") const;
  /// Returns the path of the certificate to trust.
  std::string ca_file() const { return folder_ / "certificate.pem"; }
  /// Returns the requests so far, as "GET /path range".
  std::vector<std::string> requests() const;

 private:
  void start();

  TempFolder folder_;
  pid_t process_ = 0;
  int input_ = -1;
  int port_ = 0;
};

}  // namespace tessera::test
