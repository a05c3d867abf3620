#include "apps/imdb/serve.hpp"

#include <iostream>
#include <string>

#include <tessera/framework/serving/model_server.hpp>

#include "apps/common/serving.hpp"

namespace tessera::imdb {

using namespace detail;

namespace {

struct ServeFlags {
  std::string folder;
  std::string name = "imdb";
  app::NetworkFlags network;
  app::ModelFlags model;
};

void add_options(app::AppOptions& options, ServeFlags& flags) {
  options.add_argument("DIR", "folder of exports; the newest is served", flags.folder);
  app::add_network_options(options, flags.network);
  options.add({"name", "Model", "model name in request paths", app::text(flags.name, "NAME")});
  app::add_model_options(options, flags.model);
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
  ModelServer server(
      flags.folder, {.name = flags.name, .worker = app::worker_options(flags.model), .http = http});
  std::cout << "serving version " << server.served()->version << " of " << flags.name << " on "
            << app::address_of(flags.network, server.port()) << "/v1/models/" << flags.name
            << ":predict" << std::endl;
  server.run();
  return 0;
}

}  // namespace tessera::imdb
