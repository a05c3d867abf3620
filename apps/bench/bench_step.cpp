#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>
#include <tessera/tessera.hpp>

#include "apps/bench/aten_step.hpp"
#include "apps/bench/bench.hpp"
#include "apps/bench/models.hpp"
#include "apps/bench/timing.hpp"
#include "apps/bench/training_steps.hpp"
#include "apps/common/app_options.hpp"
#include "apps/common/table.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

constexpr int64_t step_warm_up_steps = 3;
/// Maximum time of a data-parallel step on virtual devices relative to one device.
constexpr double step_max_ratio = 1.5;

struct StepFlags {
  std::vector<int64_t> devices = {1, 8, 64};
  std::vector<std::string> blocks;
  int64_t rounds = 5;
  int64_t steps = 40;
  std::string json;
};

/// One configuration and its times.
struct StepRow {
  int64_t devices;  ///< 0: directly on ATen
  std::string blocks;
  BlockPolicy policy;
  std::function<double()> step;     ///< runs a step; returns milliseconds
  std::vector<double> rounds = {};  ///< median milliseconds of each round
  double fastest = INFINITY;        ///< milliseconds of the fastest step
  double best() const { return *std::min_element(rounds.begin(), rounds.end()); }
  double worst() const { return *std::max_element(rounds.begin(), rounds.end()); }
};

StepRow model_row(int64_t devices, const std::string& blocks, BlockPolicy policy,
                  const TensorDataset& data) {
  const BlockPolicyScope scope(policy);
  const LayoutMap layouts(create_mesh({{"batch", devices}}, virtual_cpus(devices)));
  const auto steps =
      std::make_shared<TrainingSteps>(mlp_model(layouts), layouts, data, mlp_batch_size);
  return {devices, blocks, policy, [steps] { return steps->step(); }};
}

StepRow aten_row(const TensorDataset& data) {
  const auto step = std::make_shared<AtenStep>(mlp_sizes);
  const auto batches = std::make_shared<Batches>(data, mlp_batch_size);
  return {0, "by hand", BlockPolicy::per_worker, [step, batches] {
            const Examples examples = batches->next();
            return 1e3 * seconds_of([&] { (*step)(examples.x[0], examples.y[0]); });
          }};
}

/// Returns the step on ATen; one device, where all policies are equal; then the requested
/// configurations.
std::vector<StepRow> make_step_rows(const StepFlags& flags, const TensorDataset& data) {
  std::vector<StepRow> rows = {aten_row(data)};
  rows.push_back(model_row(1, "per_worker", BlockPolicy::per_worker, data));
  for (int64_t devices : flags.devices) {
    for (const auto& [name, policy] : block_policies()) {
      const bool selected =
          flags.blocks.empty() || std::count(flags.blocks.begin(), flags.blocks.end(), name) > 0;
      if (devices > 1 && selected) rows.push_back(model_row(devices, name, policy, data));
    }
  }
  return rows;
}

void add_step_round(StepRow& row, int64_t steps) {
  const BlockPolicyScope scope(row.policy);
  for (int64_t s = 0; s < step_warm_up_steps; ++s) row.step();
  std::vector<double> milliseconds;
  for (int64_t s = 0; s < steps; ++s) milliseconds.push_back(row.step());
  row.fastest = std::min(row.fastest, *std::min_element(milliseconds.begin(), milliseconds.end()));
  row.rounds.push_back(median(std::move(milliseconds)));
}

void print_step(const std::vector<StepRow>& rows, const StepFlags& flags) {
  app::Table table(
      {"devices", "blocks", "ms per step", "worst round", "fastest step", "to one device"}, 2);
  std::string verdict;
  for (const StepRow& row : rows) {
    const double ratio = row.best() / rows[1].best();
    table.add({row.devices ? std::to_string(row.devices) : "ATen", row.blocks,
               app::fixed(row.best(), 3), app::fixed(row.worst(), 3), app::fixed(row.fastest, 3),
               app::fixed(ratio, 2)});
    if (row.devices == 8 && row.policy == BlockPolicy::per_worker) {
      verdict = "\n8 devices, per_worker: " + app::fixed(ratio, 2) + " times one device; at most " +
                app::fixed(step_max_ratio, 1) +
                (ratio <= step_max_ratio ? ": met\n" : ": missed\n");
    }
  }
  std::cout << "A training step, milliseconds, " << worker_count() << " threads: the minimum over "
            << flags.rounds << " rounds of the median of " << flags.steps << " steps.\n\n"
            << table.to_string() << verdict;
}

void save_step(const std::vector<StepRow>& rows, const std::string& path) {
  Json list = Json::array();
  for (const StepRow& row : rows) {
    list.push_back({{"devices", row.devices},
                    {"blocks", row.blocks},
                    {"rounds_ms", row.rounds},
                    {"best_ms", row.best()},
                    {"fastest_ms", row.fastest},
                    {"to_one_device", row.best() / rows[1].best()}});
  }
  write_file_atomically(path, to_json_text({{"threads", worker_count()}, {"step", list}}) + "\n");
}

}  // namespace

int bench_step(int argc, const char* const* argv) {
  StepFlags flags;
  std::vector<std::string> known;
  for (const auto& [name, policy] : block_policies()) known.push_back(name);
  app::AppOptions options = app::AppOptions::bare(
      "bench step",
      "Times a training step (784-700-500-10, batch 128, Adam) on one device and on virtual ones, "
      "in turns.");
  options.add({"devices", "Step", "sizes of the mesh", app::integers(flags.devices, 1)});
  options.add({"blocks", "Step", "block policies; by default all",
               app::words(flags.blocks, "POLICY,...", known)});
  options.add({"rounds", "Step", "rounds per configuration", app::integer(flags.rounds, 1, 1000)});
  options.add({"steps", "Step", "timed steps per round", app::integer(flags.steps, 1, 100000)});
  options.add({"json", "Output", "file for the times", app::output_file(flags.json, "FILE.json")});
  if (!options.parse(argc, argv)) return 0;
  const TensorDataset data = mlp_data();
  std::vector<StepRow> rows = make_step_rows(flags, data);
  for (int64_t round = 0; round < flags.rounds; ++round) {
    for (StepRow& row : rows) add_step_round(row, flags.steps);
  }
  print_step(rows, flags);
  if (!flags.json.empty()) save_step(rows, flags.json);
  return 0;
}

}  // namespace tessera::bench
