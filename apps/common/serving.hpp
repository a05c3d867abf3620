#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/serving/http/http_server.hpp>
#include <tessera/framework/serving/model_worker_options.hpp>

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

/// The options of how a server runs the models of exports.
struct ModelFlags {
  int64_t batch_window = 0;
  int64_t max_batch = 256;
  int64_t max_activation_bytes = 0;
  int64_t threads = 1;
};

void add_network_options(AppOptions& options, NetworkFlags& flags);
/// Returns the HTTP options after parse(), for a server that runs until SIGTERM or SIGINT. Throws
/// FileError for a token file that cannot be read.
HttpServerOptions http_options(const NetworkFlags& flags);
void add_model_options(AppOptions& options, ModelFlags& flags);
/// Returns the options of the models after parse(), and sets the number of threads per call.
ModelWorkerOptions worker_options(const ModelFlags& flags);
/// Returns the server's URL, such as "http://127.0.0.1:8501".
std::string address_of(const NetworkFlags& flags, int port);
/// Throws ConfigError for a model name that cannot be part of a path; `option` gave it.
void check_model_name(const std::string& name, const std::string& option = "--name");

}  // namespace tessera::app
