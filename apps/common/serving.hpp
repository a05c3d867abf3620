#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/serving/http/http_server.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::app {

/// The network options of a server.
struct NetworkFlags {
  std::string host = "127.0.0.1";
  std::string token_file = {};
  std::string certificate = {};
  std::string key = {};
  bool insecure = false;
  int64_t port = 8501;
  int64_t max_body = 1 << 20;
  int64_t max_seconds = 60;
  bool access_log = false;
};

void add_network_options(AppOptions& options, NetworkFlags& flags);
/// Returns the HTTP options after parse(), for a server that runs until SIGTERM or SIGINT. Throws
/// FileError for a token file that cannot be read.
HttpServerOptions http_options(const NetworkFlags& flags);
/// Returns the server's URL, such as "http://127.0.0.1:8501".
std::string address_of(const NetworkFlags& flags, int port);
/// Throws ConfigError naming --name for a model name that cannot be part of a path.
void check_model_name(const std::string& name);

}  // namespace tessera::app
