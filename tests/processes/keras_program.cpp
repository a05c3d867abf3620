// One of several processes that save or load a model of some megabytes whose kernels are sharded
// over all of them, and print its cost: save=PATH or load=PATH, units=N, layers=N; times=N saves
// repeatedly.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/run_app.hpp"
#include "tests/processes/planted_fault.hpp"

namespace tessera::test {

using namespace detail;

namespace {

/// Bytes read by the measurement itself.
std::atomic<int64_t> looked = 0;

/// Returns a number of a file in /proc/self, such as "RssAnon:" of "status".
int64_t number_of(const char* file, const std::string& name) {
  std::ifstream in(std::string("/proc/self/") + file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  looked += static_cast<int64_t>(text.size());
  const size_t at = text.find(name);
  return at == std::string::npos ? 0 : std::stoll(text.substr(at + name.size()));
}

int64_t anonymous_bytes() { return number_of("status", "RssAnon:") * 1024; }

/// Bytes that this process has read so far, without those of the measurement.
int64_t bytes_read() {
  const int64_t all = number_of("io", "rchar:");
  return all - looked;
}

/// Measures the peak memory of this process during its lifetime.
class Peak {
 public:
  Peak()
      : thread_([this] {
          while (!ended_) {
            peak_ = std::max(peak_, anonymous_bytes());
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
          }
        }) {}
  int64_t end() {
    ended_ = true;
    thread_.join();
    return peak_;
  }

 private:
  std::atomic<bool> ended_ = false;
  int64_t peak_ = 0;
  std::thread thread_;
};

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
  Peak peak;
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
