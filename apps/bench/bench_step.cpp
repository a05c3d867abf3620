#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/file.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/tensor/execution.hpp>
#include <tessera/framework/training/training_state.hpp>
#include <tessera/tessera.hpp>

#include "apps/bench/bench.hpp"
#include "apps/bench/timing.hpp"
#include "apps/common/app_options.hpp"
#include "apps/common/table.hpp"

namespace tessera::bench {
namespace {

constexpr int64_t batch_size = 128;
constexpr int64_t batch_count = 8;
constexpr int64_t warm_up_steps = 3;
/// What data parallelism over virtual devices may cost against one device.
constexpr double most_ratio = 1.5;

const std::vector<std::pair<std::string, BlockPolicy>>& policies() {
  static const std::vector<std::pair<std::string, BlockPolicy>> all = {
      {"per_worker", BlockPolicy::per_worker},
      {"per_shard", BlockPolicy::per_shard},
      {"per_device", BlockPolicy::per_device}};
  return all;
}

struct Flags {
  std::vector<int64_t> devices = {1, 8, 64};
  std::vector<std::string> blocks;
  int64_t rounds = 5;
  int64_t steps = 40;
  std::string json;
};

/// The Core-API guide's MLP.
Sequential make_model() {
  const auto dense = [](int64_t units, const char* activation) {
    return Dense(units, {.activation = activation,
                         .kernel_initializer = GlorotUniform({.seed = Seed{22, 23}})});
  };
  return Sequential({Flatten(), dense(700, "relu"), dense(500, "relu"), dense(10, "linear")});
}

/// A model in training on a mesh `batch=devices`.
class Run {
 public:
  Run(int64_t devices, const std::string& blocks, BlockPolicy policy, const TensorDataset& data)
      : devices_(devices), blocks_(blocks), policy_(policy), data_(data),
        layouts_(create_mesh({{"batch", devices}}, virtual_cpus(devices))) {
    const BlockPolicyScope scope(policy_);
    model_.compile({.optimizer = Adam(1e-3, {.epsilon_on_corrected_root = true}),
                     .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                     .metrics = {"accuracy"},
                     .layouts = layouts_});
    model_.fit(data, {.batch_size = batch_size, .verbose = 0, .steps_per_epoch = 1});
  }

  /// The median time of a step, from a host batch to the loss on the host.
  void add_round(int64_t steps) {
    const BlockPolicyScope scope(policy_);
    for (int64_t s = 0; s < warm_up_steps; ++s) step();
    std::vector<double> seconds;
    for (int64_t s = 0; s < steps; ++s) seconds.push_back(step());
    rounds_.push_back(median(std::move(seconds)) * 1e3);
  }

  int64_t devices() const { return devices_; }
  const std::string& blocks() const { return blocks_; }
  /// Median milliseconds per step of each round.
  const std::vector<double>& rounds() const { return rounds_; }
  double best() const { return *std::min_element(rounds_.begin(), rounds_.end()); }
  double worst() const { return *std::max_element(rounds_.begin(), rounds_.end()); }

 private:
  double step() {
    std::vector<int64_t> rows(batch_size);
    for (int64_t r = 0; r < batch_size; ++r) {
      rows[size_t(r)] = steps_ % batch_count * batch_size + r;
    }
    ++steps_;
    Examples examples = data_.get(rows);
    return seconds_of([&] {
      const Batch batch = pack_batch(std::move(examples), layouts_);
      read_loss(model_->train_step(batch));
    });
  }

  int64_t devices_;
  std::string blocks_;
  BlockPolicy policy_;
  const TensorDataset& data_;
  LayoutMap layouts_;
  Sequential model_ = make_model();
  int64_t steps_ = 0;
  std::vector<double> rounds_;
};

/// Random images with labels that follow from them.
TensorDataset make_data() {
  const int64_t rows = batch_size * batch_count;
  const at::Tensor images = stateless_uniform({rows, 784}, Seed{1, 2}).full();
  return TensorDataset(images, images.narrow(1, 0, 10).argmax(1));
}

/// One device first, once, for all policies are alike there; the others are measured against it.
std::vector<Run> make_runs(const Flags& flags, const TensorDataset& data) {
  std::vector<Run> runs;
  runs.emplace_back(1, "per_worker", BlockPolicy::per_worker, data);
  for (int64_t devices : flags.devices) {
    for (const auto& [name, policy] : policies()) {
      const bool chosen = flags.blocks.empty() ||
                          std::count(flags.blocks.begin(), flags.blocks.end(), name) > 0;
      if (devices > 1 && chosen) runs.emplace_back(devices, name, policy, data);
    }
  }
  return runs;
}

void print(const std::vector<Run>& runs, const Flags& flags) {
  app::Table table({"devices", "blocks", "ms per step", "worst round", "to one device"}, 0);
  const double one = runs[0].best();
  std::string verdict;
  for (const Run& run : runs) {
    const double ratio = run.best() / one;
    table.add({std::to_string(run.devices()), run.blocks(), app::fixed(run.best(), 3),
               app::fixed(run.worst(), 3), app::fixed(ratio, 2)});
    if (run.devices() == 8 && run.blocks() == "per_worker") {
      verdict = "\n8 devices, per_worker: " + app::fixed(ratio, 2) + " times one device; at most " +
                app::fixed(most_ratio, 1) + (ratio <= most_ratio ? ": met\n" : ": missed\n");
    }
  }
  std::cout << "A training step, milliseconds, " << worker_count() << " threads: the least of "
            << flags.rounds << " rounds' medians of " << flags.steps << " steps.\n\n"
            << table.to_string() << verdict;
}

void save(const std::vector<Run>& runs, const std::string& path) {
  Json rows = Json::array();
  for (const Run& run : runs) {
    rows.push_back({{"devices", run.devices()},
                    {"blocks", run.blocks()},
                    {"rounds_ms", run.rounds()},
                    {"best_ms", run.best()},
                    {"to_one_device", run.best() / runs[0].best()}});
  }
  write_file_atomically(path, to_json_text({{"threads", worker_count()}, {"step", rows}}) + "\n");
}

}  // namespace

int bench_step(int argc, const char* const* argv) {
  Flags flags;
  std::vector<std::string> known;
  for (const auto& [name, policy] : policies()) known.push_back(name);
  app::AppOptions options = app::AppOptions::bare(
      "bench step",
      "Times a training step (784-700-500-10, batch 128, Adam) on one device and on virtual ones; "
      "the configurations take turns.");
  options.add({"devices", "Step", "sizes of the mesh", app::integers(flags.devices, 1)});
  options.add({"blocks", "Step", "block policies; all if absent",
               app::words(flags.blocks, "POLICY,...", known)});
  options.add({"rounds", "Step", "turns of every configuration",
               app::integer(flags.rounds, 1, 1000)});
  options.add({"steps", "Step", "timed steps in a round", app::integer(flags.steps, 1, 100000)});
  options.add({"json", "Output", "file for the times", app::output_file(flags.json, "FILE.json")});
  if (!options.parse(argc, argv)) return 0;
  const TensorDataset data = make_data();
  std::vector<Run> runs = make_runs(flags, data);
  for (int64_t round = 0; round < flags.rounds; ++round) {
    for (Run& run : runs) run.add_round(flags.steps);
  }
  print(runs, flags);
  if (!flags.json.empty()) save(runs, flags.json);
  return 0;
}

}  // namespace tessera::bench
