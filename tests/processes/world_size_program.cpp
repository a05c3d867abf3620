// One of several processes that train networks and print what must not depend on their number.
#include <algorithm>
#include <cstdio>
#include <sstream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/run_app.hpp"
#include "tests/processes/planted_fault.hpp"
#include "tests/processes/product_flops.hpp"
#include "tests/processes/world_size_networks.hpp"

namespace tessera::test {

using namespace detail;

namespace {

/// Returns the words of a text between separators.
std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, separator);) words.push_back(word);
  return words;
}

/// A training: "NETWORK:LAYOUTS:MESH", and options that are separated by commas: "eager", "clip",
/// "accumulate" and "default", which is without world_size_invariant.
struct Training {
  std::string network, layouts, mesh;
  std::vector<std::string> options;
  bool has(const std::string& option) const {
    return std::find(options.begin(), options.end(), option) != options.end();
  }
};

Training training_of(const std::string& text) {
  const std::vector<std::string> parts = split_at(text, ':');
  if (parts.size() < 3) {
    throw ConfigError("trainings", "NETWORK:LAYOUTS:MESH:OPTIONS", text, "name all parts");
  }
  Training training{parts[0], parts[1], parts[2], {}};
  if (parts.size() > 3) training.options = split_at(parts[3], ',');
  return training;
}

/// Trains, and prints the hash of all that it gives, the number of steps, the floating-point
/// operations of this process and the bytes that a device has received.
void train(const Training& training, int64_t batches, bool even,
           const DistributedOptions& options) {
  set_random_seed(7);
  const Mesh mesh = create_distributed_mesh(parse_mesh_dims(training.mesh), options);
  // The last batch is smaller, and has fewer rows than most meshes have devices.
  const WorldSizeRows rows = {24 * batches - (even ? 0 : 19), even ? 24 : 21};
  const WorldSizeNetwork network = world_size_network(
      training.network, training.layouts.find("experts") != std::string::npos, rows);
  AdamOptions adam;
  if (training.has("clip")) adam.global_clipnorm = 0.5;
  if (training.has("accumulate")) adam.gradient_accumulation_steps = 3;
  CompileOptions compile{.optimizer = Adam(1e-2, adam),
                         .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                         .metrics = {"accuracy"}};
  compile.run_eagerly = training.has("eager");
  compile.layouts = world_size_layouts(training.layouts, mesh, network);
  compile.world_size_invariant = !training.has("default");
  network.model.compile(compile);
  const ProductFlops flops;
  CommLog log;
  History history;
  {
    const CommLogScope scope(log);
    history = network.model.fit(
        network.data,
        {.batch_size = 24, .epochs = 2, .verbose = 0, .validation_data = network.validation});
  }
  std::printf("%s %zu %lld %.17g\n", digest_in_full(network.model, history).c_str(),
              history.steps.size(), static_cast<long long>(flops.count()), log.received());
}

int run(int argc, char** argv) {
  const Arguments arguments(argc, argv);
  const DistributedOptions options{.timeout = std::chrono::minutes(2),
                                   .shared_memory = arguments.number("shared_memory", 1) != 0};
  for (const std::string& text : split_at(arguments.text("trainings"), ' ')) {
    train(training_of(text), arguments.number("batches", 4), arguments.number("even", 0) != 0,
          options);
  }
  return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, tessera::test::run); }
