#include "apps/imdb/serve.hpp"

#include <iostream>
#include <string>

#include <ATen/Parallel.h>

#include <tessera/framework/serving/model_server.hpp>

#include "apps/common/serving.hpp"

namespace tessera::imdb {

using namespace detail;

namespace {

struct ServeFlags {
  std::string folder;
  std::string name = "imdb";
  app::NetworkFlags network;
  int64_t batch_window = 0;
  int64_t max_batch = 256;
  int64_t max_activation_bytes = 0;
  int64_t threads = 1;
};

void add_options(app::AppOptions& options, ServeFlags& flags) {
  const std::string model = "Model";
  options.add_argument("DIR", "folder of exports; the newest is served", flags.folder);
  app::add_network_options(options, flags.network);
  options.add({"name", model, "model name in request paths", app::text(flags.name, "NAME")});
  options.add({"batch-window", model,
               "milliseconds that a request waits for others to join its batch",
               app::integer(flags.batch_window, 0, 1000)});
  options.add({"max-batch", model, "maximum number of instances per request and per model call",
               app::integer(flags.max_batch, 1, 1 << 20)});
  options.add({"max-activation-bytes", model,
               "maximum activation memory of a call; 0: half of the available memory",
               app::integer(flags.max_activation_bytes, 0, int64_t{1} << 50)});
  options.add(
      {"threads", model, "threads per call of the model", app::integer(flags.threads, 1, 1024)});
}

}  // namespace

int serve_main(int argc, const char* const* argv) {
  ServeFlags flags;
  app::AppOptions options = app::AppOptions::bare(
      "imdb serve", "Answers predict requests over HTTP, as TensorFlow Serving does.");
  add_options(options, flags);
  if (!options.parse(argc, argv)) return 0;
  app::check_model_name(flags.name);
  const HttpServerOptions http = app::http_options(flags.network);
  at::set_num_threads(static_cast<int>(flags.threads));
  std::optional<int64_t> max_activation_bytes;
  if (flags.max_activation_bytes > 0) max_activation_bytes = flags.max_activation_bytes;
  ModelServer server(flags.folder,
                     {.name = flags.name,
                      .worker = {.max_batch = flags.max_batch,
                                 .max_activation_bytes = max_activation_bytes,
                                 .batch_window = std::chrono::milliseconds(flags.batch_window)},
                      .http = http});
  std::cout << "serving version " << server.served()->version << " of " << flags.name << " on "
            << app::address_of(flags.network, server.port()) << "/v1/models/" << flags.name
            << ":predict" << std::endl;
  server.run();
  return 0;
}

}  // namespace tessera::imdb
