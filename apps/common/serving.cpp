#include "apps/common/serving.hpp"

#include <algorithm>
#include <chrono>

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

std::string address_of(const NetworkFlags& flags, int port) {
  const bool six = flags.host.find(':') != std::string::npos;
  const std::string scheme = flags.certificate.empty() ? "http://" : "https://";
  return str(scheme, six ? "[" + flags.host + "]" : flags.host, ":", port);
}

void check_model_name(const std::string& name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  if (!name.empty() && std::all_of(name.begin(), name.end(), plain)) return;
  throw ConfigError("--name", "must be letters, digits, '_' or '-'", in_quotes(name),
                    "write for example reviews");
}

}  // namespace tessera::app
