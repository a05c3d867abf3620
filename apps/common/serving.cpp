#include "apps/common/serving.hpp"

#include <algorithm>
#include <chrono>

#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/secret.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::app {

using namespace detail;

void add_network_options(AppOptions& options, NetworkFlags& flags) {
  const std::string network = "Network";
  options.add(
      {"port", network, "port to listen on; 0: any free one", integer(flags.port, 0, 65535)});
  options.add({"host", network, "address to listen on, in digits", text(flags.host, "ADDRESS")});
  options.add({"token-file", network,
               "file of the token that requests must send as \"Authorization: Bearer\"",
               input_file(flags.token_file, "FILE")});
  options.add({"certificate", network,
               "PEM file of the server's certificates, for TLS; read anew when it changes",
               input_file(flags.certificate, "FILE")});
  options.add({"key", network, "PEM file of the certificate's key, which only you may read",
               input_file(flags.key, "FILE")});
  options.add({"insecure", network, "listen beyond this host without a token, to any client",
               toggle(flags.insecure)});
  options.add({"max-body", network, "maximum bytes of a request",
               integer(flags.max_body, 1, int64_t{1} << 30)});
  options.add({"max-seconds", network,
               "maximum seconds until a response is ready; then the request gets status 504",
               integer(flags.max_seconds, 1, 86400)});
  options.add(
      {"access-log", network, "log each response to standard error", toggle(flags.access_log)});
}

HttpServerOptions http_options(const NetworkFlags& flags) {
  return {
      .host = flags.host,
      .port = flags.port,
      .token = flags.token_file.empty() ? "" : read_secret_file("--token-file", flags.token_file),
      .certificate = flags.certificate,
      .key = flags.key,
      .insecure = flags.insecure,
      .max_body = flags.max_body,
      .response_timeout = std::chrono::seconds(flags.max_seconds),
      .signals = true,
      .access_log = flags.access_log};
}

void add_model_options(AppOptions& options, ModelFlags& flags) {
  const std::string model = "Model";
  options.add({"batch-window", model,
               "milliseconds that a request waits for others to join its batch",
               integer(flags.batch_window, 0, 1000)});
  options.add({"max-batch", model, "maximum number of instances per request and per model call",
               integer(flags.max_batch, 1, 1 << 20)});
  options.add(
      {"max-activation-bytes", model,
       "maximum activation memory of a call; 0: half of the available memory, in equal shares for "
       "the models",
       integer(flags.max_activation_bytes, 0, int64_t{1} << 50)});
  options.add({"threads", model, "threads per call of a model", integer(flags.threads, 1, 1024)});
}

ModelWorkerOptions worker_options(const ModelFlags& flags) {
  at::set_num_threads(static_cast<int>(flags.threads));
  ModelWorkerOptions options{.max_batch = flags.max_batch,
                             .batch_window = std::chrono::milliseconds(flags.batch_window)};
  if (flags.max_activation_bytes > 0) options.max_activation_bytes = flags.max_activation_bytes;
  return options;
}

std::string address_of(const NetworkFlags& flags, int port) {
  const bool six = flags.host.find(':') != std::string::npos;
  const std::string scheme = flags.certificate.empty() ? "http://" : "https://";
  return str(scheme, six ? "[" + flags.host + "]" : flags.host, ":", port);
}

void check_model_name(const std::string& name, const std::string& option) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  if (!name.empty() && std::all_of(name.begin(), name.end(), plain)) return;
  throw ConfigError(option, "a model's name must have letters, digits, '_' and '-' only",
                    in_quotes(name), "write for example reviews");
}

}  // namespace tessera::app
