#include "apps/imdb/serve.hpp"

#include <algorithm>
#include <iostream>
#include <string>

#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/secret.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/serving/model_server.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::imdb {

using namespace detail;

namespace {

struct ServeFlags {
  std::string folder;
  std::string name = "imdb";
  std::string host = "127.0.0.1";
  std::string token_file;
  std::string certificate;
  std::string key;
  bool insecure = false;
  int64_t port = 8501;
  int64_t batch_window = 0;
  int64_t max_batch = 256;
  int64_t max_body = 1 << 20;
  int64_t max_activation_bytes = 0;
  int64_t threads = 1;
  bool access_log = false;
};

void check_name(const std::string& name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-';
  };
  if (!name.empty() && std::all_of(name.begin(), name.end(), plain)) return;
  throw ConfigError("--name", "must be letters, digits, '_' or '-'", in_quotes(name),
                    "write for example imdb");
}

void add_options(app::AppOptions& options, ServeFlags& flags) {
  const std::string network = "Network";
  const std::string model = "Model";
  options.add_argument("DIR", "folder of exports; the newest is served", flags.folder);
  options.add({"port", network, "0 for a free one", app::integer(flags.port, 0, 65535)});
  options.add({"host", network, "address to listen on, in digits",
               app::text(flags.host, "ADDRESS")});
  options.add({"token-file", network, "what requests must carry as \"Authorization: Bearer\"",
               app::input_file(flags.token_file, "FILE")});
  options.add({"certificate", network, "PEM file of the server's certificates, for TLS",
               app::input_file(flags.certificate, "FILE")});
  options.add({"key", network, "PEM file of the certificate's key",
               app::input_file(flags.key, "FILE")});
  options.add({"insecure", network, "listen beyond this host without a token, for whoever asks",
               app::toggle(flags.insecure)});
  options.add({"max-body", network, "bytes of a request",
               app::integer(flags.max_body, 1, int64_t{1} << 30)});
  options.add({"access-log", network, "a line on the standard error for each answer",
               app::toggle(flags.access_log)});
  options.add({"name", model, "name of the model in paths", app::text(flags.name, "NAME")});
  options.add({"batch-window", model, "milliseconds that a request waits for others",
               app::integer(flags.batch_window, 0, 1000)});
  options.add({"max-batch", model, "instances of a request, and of a call of the model",
               app::integer(flags.max_batch, 1, 1 << 20)});
  options.add({"max-activation-bytes", model,
               "that the values of a call may hold; 0: half of what is available",
               app::integer(flags.max_activation_bytes, 0, int64_t{1} << 50)});
  options.add({"threads", model, "threads of a call of the model",
               app::integer(flags.threads, 1, 1024)});
}

}  // namespace

int serve_main(int argc, const char* const* argv) {
  ServeFlags flags;
  app::AppOptions options = app::AppOptions::bare(
      "imdb serve", "Answers predict requests over HTTP, as TensorFlow Serving does.");
  add_options(options, flags);
  if (!options.parse(argc, argv)) return 0;
  check_name(flags.name);
  const std::string token =
      flags.token_file.empty() ? "" : read_secret_file("--token-file", flags.token_file);
  at::set_num_threads(static_cast<int>(flags.threads));
  std::optional<int64_t> max_activation_bytes;
  if (flags.max_activation_bytes > 0) max_activation_bytes = flags.max_activation_bytes;
  ModelServer server(flags.folder,
                     {.name = flags.name,
                      .worker = {.max_batch = flags.max_batch,
                                 .max_activation_bytes = max_activation_bytes,
                                 .batch_window = std::chrono::milliseconds(flags.batch_window)},
                      .http = {.host = flags.host,
                               .port = flags.port,
                               .token = token,
                               .certificate = flags.certificate,
                               .key = flags.key,
                               .insecure = flags.insecure,
                               .max_body = flags.max_body,
                               .signals = true,
                               .access_log = flags.access_log}});
  const bool six = flags.host.find(':') != std::string::npos;
  const std::string scheme = flags.certificate.empty() ? "http://" : "https://";
  std::cout << "serving version " << server.served()->version << " of " << flags.name << " on "
            << scheme << (six ? "[" + flags.host + "]" : flags.host) << ":" << server.port()
            << "/v1/models/" << flags.name << ":predict" << std::endl;
  server.run();
  return 0;
}

}  // namespace tessera::imdb
