#include <iostream>
#include <memory>

#include <ATen/Parallel.h>

#include <tessera/framework/serving/model_server.hpp>

#include "apps/common/serving.hpp"
#include "apps/common/setup.hpp"
#include "apps/gpt/generator.hpp"
#include "apps/gpt/saved_model.hpp"
#include "apps/gpt/text_handler.hpp"
#include "apps/gpt/train.hpp"

namespace tessera::gpt {

using namespace detail;

int serve_main(int argc, const char* const* argv) {
  app::AppOptions options =
      app::AppOptions::bare("gpt serve", "Continues texts over HTTP with a trained model.");
  std::string folder, name = "gpt";
  // A text of 1000 words takes minutes on a busy server.
  app::NetworkFlags network{.max_seconds = 300};
  Sampling sampling;
  TextLimits limits;
  int64_t threads = 1;
  options.add_argument("DIR", "folder that gpt --save wrote", folder);
  app::add_network_options(options, network);
  options.add({"name", "Model", "model name in request paths", app::text(name, "NAME")});
  options.add(
      {"threads", "Model", "threads per call of the model", app::integer(threads, 1, 1024)});
  options.add({"max-texts", "Model", "maximum number of texts per request",
               app::integer(limits.texts, 1, 1 << 20)});
  options.add({"max-words", "Model", "maximum number of words that a request may ask for",
               app::integer(limits.words, 1, 1 << 20)});
  options.add({"max-request-words", "Model",
               "maximum number of words of a request, added to all of its texts; 0: 16000, or "
               "--max-words if that is more",
               app::integer(limits.request_words, 0, int64_t{1} << 40)});
  options.add({"max-client-words", "Model",
               "maximum number of words that a client's unfinished requests may ask for; 0: 4 "
               "times that of a request",
               app::integer(limits.client_words, 0, int64_t{1} << 40)});
  options.add({"max-active", "Model",
               "requests whose words are generated in turn, each with a key-value cache; others "
               "wait",
               app::integer(limits.active, 1, 1024)});
  add_sampling_options(options, sampling);
  options.add({"seed", "Text", "seed of sampling, if a request has none",
               app::integer(sampling.seed, INT64_MIN)});
  if (!options.parse(argc, argv)) return 0;
  app::check_model_name(name);
  const HttpServerOptions http = app::http_options(network);
  at::set_num_threads(static_cast<int>(threads));

  const SavedModel saved = read_model_folder(folder);
  set_dtype_policy(dtype_policy(saved.dtype));
  const Functional model = gpt_model(saved.size);
  const LayoutMap layouts(create_mesh({{"batch", 1}}));
  model.compile({.layouts = layouts});
  load_weights_of(model, saved);
  const Generator generator(model, saved.vocabulary, saved.size.length);
  ModelServer server(std::make_unique<TextHandler>(generator, sampling, limits), name, http);
  std::cout << "serving " << name << " on " << app::address_of(network, server.port())
            << "/v1/models/" << name << ":predict" << std::endl;
  server.run();
  return 0;
}

}  // namespace tessera::gpt
