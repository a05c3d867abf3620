#include <iostream>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/serving/model_server.hpp>

#include "apps/common/run_app.hpp"
#include "apps/common/serving.hpp"

namespace {

using namespace tessera;
using namespace tessera::detail;

/// Splits NAME=FOLDER. Throws ConfigError.
NamedExport named_export(const std::string& word) {
  const size_t at = word.find('=');
  if (at == std::string::npos || at + 1 == word.size()) {
    throw ConfigError("command line", "models must be given as NAME=FOLDER", in_quotes(word),
                      "write for example digits=exports/digits");
  }
  NamedExport model{word.substr(0, at), word.substr(at + 1)};
  app::check_model_name(model.name, "NAME=FOLDER");
  return model;
}

int serve_main(int argc, char** argv) {
  std::vector<std::string> words;
  app::NetworkFlags network;
  app::ModelFlags flags;
  app::AppOptions options = app::AppOptions::bare(
      "serve", "Answers predict requests for exports over HTTP, as TensorFlow Serving does.");
  options.add_arguments("NAME=FOLDER",
                        "models: a name for request paths, and a folder of exports, of which the "
                        "newest is served",
                        words);
  app::add_network_options(options, network);
  app::add_model_options(options, flags);
  if (!options.parse(argc, argv)) return 0;
  if (words.empty()) {
    throw ConfigError("command line", "serve NAME=FOLDER...", "no model", "see serve --help");
  }
  std::vector<NamedExport> models;
  for (const std::string& word : words) models.push_back(named_export(word));
  const HttpServerOptions http = app::http_options(network);
  ModelServer server(models, {.worker = app::worker_options(flags), .http = http});
  std::vector<std::string> served;
  for (const NamedExport& model : models) {
    served.push_back(str("version ", server.served(model.name)->version, " of ", model.name));
  }
  std::cout << "serving " << join(served, ", ") << " on " << app::address_of(network, server.port())
            << "/v1/models/NAME:predict" << std::endl;
  server.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, serve_main); }
