// One of several processes that save or load a model of some megabytes whose kernels are sharded
// over all of them, and print its cost: save=PATH or load=PATH, units=N, layers=N; times=N saves
// repeatedly.
#include <cstdio>
#include <optional>
#include <string>

#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/run_app.hpp"
#include "tests/processes/planted_fault.hpp"
#include "tests/support/process_memory.hpp"

namespace tessera::test {

using namespace detail;

namespace {

/// Bytes that this process has read so far, without those of the measurement.
int64_t bytes_read() {
  const int64_t all = number_in_proc("io", "rchar:");
  return all - bytes_read_in_proc;
}

ModelHandle large_model(const Arguments& arguments, const LayoutMap& layouts) {
  const int64_t units = arguments.number("units", 256);
  Sequential model({Input({units})});
  for (int64_t i = 0; i < arguments.number("layers", 4); ++i) model.add(Dense(units));
  model->place_weights(layouts);
  return model;
}

int64_t shard_bytes(const ModelHandle& model) {
  int64_t bytes = 0;
  for (const Variable& weight : model->weights()) {
    bytes += static_cast<int64_t>(weight.value().local(0).nbytes());
  }
  return bytes;
}

int run(int argc, char** argv) {
  const Arguments arguments(argc, argv);
  const Mesh mesh = create_distributed_mesh({{"model", arguments.number("devices", 4)}});
  LayoutMap layouts(mesh);
  layouts[".*/kernel"] = {"model", unsharded};
  layouts[".*/bias"] = {"model"};
  const std::string save = arguments.text("save"), load = arguments.text("load");
  std::optional<ModelHandle> model;
  // Weights are loaded into an existing model, archives into a new one.
  const bool weights = (save + load).ends_with(".h5");
  const bool zipped = save.ends_with(".keras");
  if (weights || load.empty()) model = large_model(arguments, layouts);
  for (int64_t i = 1; i < arguments.number("times", 1); ++i) {
    weights ? (*model)->save_weights(save) : (*model)->save(save, {.zipped = zipped});
    std::printf("saved %lld\n", static_cast<long long>(i));
    std::fflush(stdout);
  }
  // Weights are drawn when first read.
  if (model) shard_bytes(*model);
  CommLog log;
  const int64_t before = anonymous_bytes(), read = bytes_read();
  AnonymousPeak peak;
  {
    const CommLogScope scope(log);
    if (!save.empty()) {
      weights ? (*model)->save_weights(save) : (*model)->save(save, {.zipped = zipped});
    }
    if (!load.empty() && weights) (*model)->load_weights(load);
    if (!load.empty() && !weights) model = load_model(load, {.layouts = layouts});
  }
  const int64_t growth = peak.end() - before, read_now = bytes_read();
  std::printf("shard %lld growth %lld read %lld collectives %zu\n",
              static_cast<long long>(shard_bytes(*model)), static_cast<long long>(growth),
              static_cast<long long>(read_now - read), log.entries().size());
  return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, tessera::test::run); }
