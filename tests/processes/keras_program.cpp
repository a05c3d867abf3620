// One of several processes that save or load a model of some megabytes whose kernels are sharded
// over all of them, and print its cost: save=PATH or load=PATH, units=N, layers=N; times=N saves
// repeatedly; pretrained=FOLDER loads a model of Hugging Face's programs.
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/run_app.hpp"
#include "tests/processes/planted_fault.hpp"
#include "tests/support/language_model_layouts.hpp"
#include "tests/support/process_memory.hpp"

namespace tessera::test {

using namespace detail;

namespace {

/// Bytes that this process has read so far, without those of the measurement.
int64_t bytes_read() {
  const int64_t all = number_in_proc("io", "rchar:");
  return all - bytes_read_in_proc;
}

/// Bytes of a folder's files that lie in this process' memory because they are mapped.
int64_t mapped_bytes(const std::string& folder) {
  std::ifstream in("/proc/self/smaps");
  int64_t bytes = 0;
  bool is_meant = false;
  for (std::string line; std::getline(in, line);) {
    bytes_read_in_proc += static_cast<int64_t>(line.size()) + 1;
    // A mapping's line is "7f00-7f10 r--s 00000000 fe:00 12 PATH", before lines "Rss:    4 kB".
    const size_t word = line.find(' ');
    if (word != line.npos && line[word - 1] != ':') is_meant = line.find(folder) != line.npos;
    if (is_meant && line.starts_with("Rss:")) bytes += std::stoll(line.substr(4)) * 1024;
  }
  return bytes;
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
  const std::string pretrained = arguments.text("pretrained");
  const std::string save = arguments.text("save"), load = arguments.text("load");
  if (pretrained.empty()) {
    layouts[".*/kernel"] = {"model", unsharded};
    layouts[".*/bias"] = {"model"};
  } else {
    shard_language_model(layouts);
  }
  std::optional<ModelHandle> model;
  // Weights are loaded into an existing model, archives into a new one.
  const bool weights = (save + load).ends_with(".h5");
  const bool zipped = save.ends_with(".keras");
  if (weights || (load + pretrained).empty()) model = large_model(arguments, layouts);
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
    if (!pretrained.empty()) model = load_pretrained(pretrained, {.layouts = layouts});
  }
  const int64_t growth = peak.end() - before;
  const int64_t read_now = bytes_read() + (pretrained.empty() ? 0 : mapped_bytes(pretrained));
  std::printf("shard %lld growth %lld read %lld collectives %zu\n",
              static_cast<long long>(shard_bytes(*model)), static_cast<long long>(growth),
              static_cast<long long>(read_now - read), log.entries().size());
  return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, tessera::test::run); }
