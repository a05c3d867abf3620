#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/tessera.hpp>

#include "apps/bench/bench.hpp"
#include "apps/bench/models.hpp"
#include "apps/bench/timing.hpp"
#include "apps/bench/training_steps.hpp"
#include "apps/common/app_options.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

struct WorkFlags {
  std::string work;
  int64_t devices = 1;
  std::string blocks = "per_worker";
  std::string scheme = "data";
};

/// Does work so many times and says what it took.
using TimedWork = std::function<Json(int64_t count)>;

Json milliseconds(const std::vector<double>& values) { return {{"milliseconds", values}}; }

LayoutMap batch_layouts(const WorkFlags& flags) {
  return LayoutMap(create_mesh({{"batch", flags.devices}}, virtual_cpus(flags.devices)));
}

TimedWork stepping(const std::shared_ptr<TrainingSteps>& steps) {
  return [steps](int64_t count) {
    std::vector<double> taken;
    for (int64_t i = 0; i < count; ++i) taken.push_back(steps->step());
    return milliseconds(taken);
  };
}

TimedWork mlp_work(const WorkFlags& flags) {
  const LayoutMap layouts = batch_layouts(flags);
  return stepping(std::make_shared<TrainingSteps>(mlp_model(layouts), layouts, mlp_data(),
                                                  mlp_batch_size));
}

TimedWork imdb_work(const WorkFlags& flags) {
  const LayoutMap layouts = imdb_layouts(flags.scheme);
  return stepping(std::make_shared<TrainingSteps>(imdb_model(layouts), layouts, imdb_data(),
                                                  imdb_batch_size));
}

/// Epochs of fit, in milliseconds a step.
TimedWork fit_work(const MnistDataset& data, const Sequential& model) {
  const double steps = static_cast<double>((data.size() + mlp_batch_size - 1) / mlp_batch_size);
  return [=](int64_t epochs) {
    const double seconds = seconds_of(
        [&] { model.fit(data, {.batch_size = mlp_batch_size, .epochs = epochs}); });
    return milliseconds({1e3 * seconds / static_cast<double>(epochs) / steps});
  };
}

/// Learning the vocabulary, and every row as training asks for it.
TimedWork text_work(const WorkFlags&) {
  const auto texts = datasets::imdb();
  return [texts](int64_t count) {
    std::vector<double> taken;
    for (int64_t i = 0; i < count; ++i) {
      taken.push_back(1e3 * seconds_of([&] {
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

TimedWork first_step_work(const WorkFlags& flags) {
  const LayoutMap layouts = batch_layouts(flags);
  return [layouts](int64_t) -> Json {
    mlp_model(layouts).fit(mlp_data(), {.batch_size = mlp_batch_size,
                                        .verbose = 0,
                                        .steps_per_epoch = 1});
    return {{"steps", 1}};
  };
}

/// A line of /proc/self/status, such as "VmRSS", in megabytes.
double memory(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return std::stod(line.substr(name.size() + 1)) / 1024;
  }
  return 0;
}

/// By how much the process grows at most while the large model is trained.
TimedWork memory_work(const WorkFlags& flags) {
  const double bare = memory("VmRSS");
  const LayoutMap layouts = batch_layouts(flags);
  return [layouts, bare](int64_t steps) -> Json {
    const Sequential model = large_model(layouts);
    model.fit(mlp_data(), {.batch_size = mlp_batch_size, .verbose = 0, .steps_per_epoch = steps});
    return {{"megabytes", memory("VmHWM") - bare}};
  };
}

TimedWork make_work(const WorkFlags& flags) {
  if (flags.work == "mlp") return mlp_work(flags);
  if (flags.work == "imdb") return imdb_work(flags);
  if (flags.work == "fit") return fit_work(datasets::mnist(), digits_model());
  if (flags.work == "cnn") return fit_work(cnn_data(), cnn_model());
  if (flags.work == "text") return text_work(flags);
  return flags.work == "memory" ? memory_work(flags) : first_step_work(flags);
}

BlockPolicy policy_of(const std::string& blocks) {
  return std::find_if(block_policies().begin(), block_policies().end(),
                      [&](const auto& policy) { return policy.first == blocks; })->second;
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
  options.add_argument("WORK", "mlp, imdb, fit, text, first-step or memory", flags.work);
  options.add({"devices", "Work", "of the mesh", app::integer(flags.devices, 1, 4096)});
  options.add({"blocks", "Work", "block policy",
               app::choice(flags.blocks, {"per_worker", "per_shard", "per_device"})});
  options.add({"scheme", "Work", "of imdb",
               app::choice(flags.scheme, {"data", "model", "spatial"})});
  if (!options.parse(argc, argv)) return 0;
  const BlockPolicyScope scope(policy_of(flags.blocks));
  answer_lines(make_work(flags));
  return 0;
}

}  // namespace tessera::bench
