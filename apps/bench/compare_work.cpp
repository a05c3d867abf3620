#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/serving/model_server.hpp>
#include <tessera/framework/training/internal/step_runner.hpp>
#include <tessera/tessera.hpp>

#include "apps/bench/bench.hpp"
#include "apps/bench/generation_works.hpp"
#include "apps/bench/models.hpp"
#include "apps/bench/op_works.hpp"
#include "apps/bench/step_works.hpp"
#include "apps/bench/timing.hpp"
#include "apps/bench/training_steps.hpp"
#include "apps/common/app_options.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

LayoutMap batch_layouts(const WorkFlags& flags) {
  LayoutMap layouts(mesh_of(flags));
  layouts.set_world_size_invariant(flags.invariant);
  return layouts;
}

TimedWork mlp_work(const WorkFlags& flags) {
  const LayoutMap layouts = batch_layouts(flags);
  return stepping(
      std::make_shared<TrainingSteps>(mlp_model(layouts), layouts, mlp_data(), mlp_batch_size));
}

TimedWork imdb_work(const WorkFlags& flags) {
  const LayoutMap layouts = imdb_layouts(flags.scheme);
  return stepping(
      std::make_shared<TrainingSteps>(imdb_model(layouts), layouts, imdb_data(), imdb_batch_size));
}

/// Times epochs of fit, in milliseconds per step.
TimedWork fit_work(const MnistDataset& data, const Sequential& model) {
  const double steps = static_cast<double>((data.size() + mlp_batch_size - 1) / mlp_batch_size);
  return [=](int64_t epochs) {
    const double seconds =
        seconds_of([&] { model.fit(data, {.batch_size = mlp_batch_size, .epochs = epochs}); });
    return milliseconds({1e3 * seconds / static_cast<double>(epochs) / steps});
  };
}

/// Times fit on batches on the host, repeated endlessly, in milliseconds per step.
TimedWork endless_fit(const ModelHandle& model, const TensorDataset& data, int64_t batch_size) {
  const auto start = [=] {
    return [batches = Batches(data, batch_size)]() mutable -> std::optional<Examples> {
      return batches.next();
    };
  };
  const GeneratorDataset batches(start, {.endless = true});
  return [=](int64_t steps) {
    const double seconds =
        seconds_of([&] { model.fit(batches, {.verbose = 0, .steps_per_epoch = steps}); });
    return milliseconds({1e3 * seconds / static_cast<double>(steps)});
  };
}

/// Times steps on batches that are already on the device.
TimedWork resident_steps(const ModelHandle& model, const LayoutMap& layouts,
                         const TensorDataset& data, int64_t batch_size) {
  std::vector<Batch> batches;
  Batches from_host(data, batch_size);
  for (int64_t i = 0; i < data.size() / batch_size; ++i) {
    batches.push_back(pack_batch(from_host.next(), layouts));
  }
  return [=](int64_t count) {
    std::vector<double> taken;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      taken.push_back(1e3 * seconds_of([&] {
                        read_loss(model->train_step(batches[i % batches.size()]).loss());
                      }));
    }
    return milliseconds(taken);
  };
}

/// Times predictions, from a batch on the host to its outputs there.
TimedWork predictions(const ModelHandle& model, const TensorDataset& data, int64_t batch_size) {
  const auto batches = std::make_shared<Batches>(data, batch_size);
  return [=](int64_t count) {
    std::vector<double> taken;
    for (int64_t i = 0; i < count; ++i) {
      Examples batch = batches->next();
      batch.y.clear();
      taken.push_back(1e3 * seconds_of([&] { model.predict_on_batch(batch); }));
    }
    return milliseconds(taken);
  };
}

/// Returns a value of /proc/self/status, such as "VmRSS", in megabytes.
double memory(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return std::stod(line.substr(name.size() + 1)) / 1024;
  }
  return 0;
}

/// Measures the peak memory growth of the process while it trains.
TimedWork step_memory(const StepWork& work, const LayoutMap& layouts, const TensorDataset& data) {
  const double bare = memory("VmRSS");
  return [=](int64_t count) -> Json {
    TrainingSteps steps(work.model(layouts), layouts, data, work.batch_size);
    for (int64_t i = 0; i < count; ++i) steps.step();
    return {{"megabytes", memory("VmHWM") - bare}};
  };
}

/// Times the training of `bench compare --device` and `--work transformer`.
TimedWork step_work(const StepWork& work, const WorkFlags& flags) {
  set_dtype_policy(dtype_policy(work.dtype));
  LayoutMap layouts(mesh_of(flags));
  layouts.set_world_size_invariant(flags.invariant);
  const TensorDataset data = work.data();
  if (flags.way == "memory") return step_memory(work, layouts, data);
  const auto steps =
      std::make_shared<TrainingSteps>(work.model(layouts), layouts, data, work.batch_size);
  if (flags.way == "predict") return predictions(steps->model(), data, work.batch_size);
  if (flags.way == "fit") return endless_fit(steps->model(), data, work.batch_size);
  if (flags.way == "resident") {
    return resident_steps(steps->model(), layouts, data, work.batch_size);
  }
  return stepping(steps);
}

/// Times learning the vocabulary and reading every row, as training does.
TimedWork text_work(const WorkFlags&) {
  const auto texts = datasets::imdb();
  return [texts](int64_t count) {
    std::vector<double> taken;
    for (int64_t i = 0; i < count; ++i) {
      taken.push_back(
          1e3 * seconds_of([&] {
            TextVectorization vectorize({.max_tokens = imdb_sizes[0], .output_mode = "tf_idf"});
            vectorize.adapt(texts);
            const auto rows = vectorize.dataset(texts);
            std::vector<int64_t> batch(256);
            for (int64_t first = 0; first < rows->size(); first += 256) {
              batch.resize(static_cast<size_t>(std::min<int64_t>(256, rows->size() - first)));
              std::iota(batch.begin(), batch.end(), first);
              rows->get(batch);
            }
          }));
    }
    return milliseconds(taken);
  };
}

/// Times reading a CSV file.
TimedWork csv_work(const WorkFlags& flags) {
  return [path = flags.data](int64_t count) {
    std::vector<double> taken;
    for (int64_t i = 0; i < count; ++i) {
      taken.push_back(1e3 * seconds_of([&] { datasets::read_csv(path); }));
    }
    return milliseconds(taken);
  };
}

/// Times an epoch of a folder's pictures, in batches of 32 on two threads.
TimedWork pictures_work(const WorkFlags& flags) {
  const auto data = std::make_shared<datasets::ImageFolder>(
      flags.data, ImageFolderOptions{.image_size = {224, 224}, .shuffle = false});
  return [data](int64_t count) {
    std::vector<double> taken;
    for (int64_t i = 0; i < count; ++i) {
      std::atomic<int64_t> next = 0;
      const auto read = [&] {
        for (int64_t first = next.fetch_add(32); first < data->size(); first = next.fetch_add(32)) {
          const int64_t rows = std::min<int64_t>(32, data->size() - first);
          std::vector<int64_t> batch(static_cast<size_t>(rows));
          std::iota(batch.begin(), batch.end(), first);
          data->get(batch);
        }
      };
      taken.push_back(1e3 * seconds_of([&] {
                        std::thread other(read);
                        read();
                        other.join();
                      }));
    }
    return milliseconds(taken);
  };
}

TimedWork first_step_work(const WorkFlags& flags) {
  const LayoutMap layouts = batch_layouts(flags);
  return [layouts](int64_t) -> Json {
    mlp_model(layouts).fit(mlp_data(),
                           {.batch_size = mlp_batch_size, .verbose = 0, .steps_per_epoch = 1});
    return {{"steps", 1}};
  };
}

/// Measures the peak memory growth of the process while it trains the large model.
TimedWork memory_work(const WorkFlags& flags) {
  const double bare = memory("VmRSS");
  const LayoutMap layouts = batch_layouts(flags);
  return [layouts, bare](int64_t steps) -> Json {
    const Sequential model = large_model(layouts);
    model.fit(mlp_data(), {.batch_size = mlp_batch_size, .verbose = 0, .steps_per_epoch = steps});
    return {{"megabytes", memory("VmHWM") - bare}};
  };
}

/// A server that runs on its own thread.
class RunningServer {
 public:
  RunningServer(const std::string& folder, const HttpServerOptions& http)
      : server_(folder, {.http = http}), thread_([this] { server_.run(); }) {}
  ~RunningServer() {
    server_.stop();
    thread_.join();
  }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  int port() const { return server_.port(); }

 private:
  ModelServer server_;
  std::thread thread_;
};

/// Serves an export, and answers with its port.
TimedWork serving_work(const WorkFlags& flags) {
  at::set_num_threads(static_cast<int>(flags.threads));
  const auto server = std::make_shared<RunningServer>(flags.data, HttpServerOptions{.port = 0});
  return [server](int64_t) -> Json { return {{"port", server->port()}}; };
}

TimedWork make_work(const WorkFlags& flags) {
  if (flags.work == "attention") return attention_work(flags);
  if (!flags.device.empty()) {
    if (flags.work == "dropout" || flags.work == "copy") return dropout_work(flags);
    return step_work(find_step_work(flags.work, flags.device), flags);
  }
  if (flags.work == "mlp") return mlp_work(flags);
  if (flags.work == "imdb") return imdb_work(flags);
  if (flags.work == "fit") return fit_work(datasets::mnist(), digits_model());
  if (flags.work == "cnn") return fit_work(cnn_data(), cnn_model());
  if (flags.work == "text") return text_work(flags);
  if (flags.work == "csv") return csv_work(flags);
  if (flags.work == "pictures") return pictures_work(flags);
  if (flags.work == "serving") return serving_work(flags);
  if (flags.work.starts_with("generate_")) return generation_work(flags);
  if (flags.work.starts_with("train_")) return language_training_work(flags);
  return flags.work == "memory" ? memory_work(flags) : first_step_work(flags);
}

BlockPolicy policy_of(const std::string& blocks) {
  return std::find_if(block_policies().begin(), block_policies().end(),
                      [&](const auto& policy) { return policy.first == blocks; })
      ->second;
}

void answer_lines(const TimedWork& work) {
  for (int64_t count = 0; std::cin >> count;) {
    std::cout << to_json_text(work(count), -1) << std::endl;
  }
}

}  // namespace

int compare_nothing() {
  answer_lines([](int64_t) { return Json::object(); });
  return 0;
}

int compare_work(int argc, const char* const* argv) {
  WorkFlags flags;
  app::AppOptions options =
      app::AppOptions::bare("bench compare-work", "Our part of a comparison.");
  options.add_argument("WORK",
                       "mlp, imdb, fit, cnn, text, csv, pictures, serving, attention, "
                       "generate_small, generate_smol, train_small, train_smol, first-step or "
                       "memory; with a device one of bench compare --device, or copy",
                       flags.work);
  options.add({"device", "Work", "device type, instead of virtual CPUs",
               app::choice(flags.device, {"cpu", "cuda"})});
  options.add({"way", "Work",
               "step: batches on the host; resident: batches on the device; fit; predict; memory: "
               "the growth of the process instead of times",
               app::choice(flags.way, {"step", "resident", "fit", "predict", "memory"})});
  options.add({"devices", "Work", "devices of the mesh", app::integer(flags.devices, 1, 4096)});
  options.add({"blocks", "Work", "block policy",
               app::choice(flags.blocks, {"per_worker", "per_shard", "per_device"})});
  options.add({"world-size-invariant", "Work",
               "train with the same bits on any number of processes: mlp, and works with a device",
               app::toggle(flags.invariant)});
  options.add({"scheme", "Work", "scheme of imdb",
               app::choice(flags.scheme, {"data", "model", "spatial"})});
  options.add({"data", "Work", "the file of csv, the folder of pictures, the export of serving",
               app::text(flags.data, "PATH")});
  options.add({"threads", "Work", "threads per call of the model of serving",
               app::integer(flags.threads, 1, 1024)});
  if (!options.parse(argc, argv)) return 0;
  const BlockPolicyScope scope(policy_of(flags.blocks));
  answer_lines(make_work(flags));
  return 0;
}

}  // namespace tessera::bench
