#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/serving/http/http_server.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::app {

/// How a program that serves is reached.
struct NetworkFlags {
  std::string host = "127.0.0.1";
  std::string token_file;
  std::string certificate;
  std::string key;
  bool insecure = false;
  int64_t port = 8501;
  int64_t max_body = 1 << 20;
  bool access_log = false;
};

void add_network_options(AppOptions& options, NetworkFlags& flags);
/// For after parse(): connections until SIGTERM or SIGINT. Throws FileError for a token that cannot
/// be read.
detail::HttpServerOptions http_options(const NetworkFlags& flags);
/// "http://127.0.0.1:8501", of the port that it listens on.
std::string address_of(const NetworkFlags& flags, int port);
/// Refuses names of models that paths cannot have. Throws ConfigError naming --name.
void check_model_name(const std::string& name);

}  // namespace tessera::app
