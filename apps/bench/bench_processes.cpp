#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/optimizer/internal/gradient_reducer.hpp>

#include "apps/bench/bench.hpp"
#include "apps/bench/models.hpp"
#include "apps/bench/timing.hpp"
#include "apps/bench/training_steps.hpp"
#include "apps/bench/worker_group.hpp"
#include "apps/common/app_options.hpp"
#include "apps/common/table.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

constexpr int64_t process_warm_up_steps = 5;
/// Maximum time of a step relative to PyTorch's DistributedDataParallel.
constexpr double process_max_ratio = 0.8;
/// Maximum time of fit with snapshots in memory relative to fit without: of data parallelism, whose
/// values all processes have, and with copies for neighbours.
constexpr double elastic_max_ratio = 1.03, elastic_copies_max_ratio = 1.1;

struct ProcessFlags {
  int64_t processes = 2;
  std::string torch;
  int64_t rounds = 5;
  int64_t steps = 60;
  bool elastic = false;
  std::string json;
};

/// Runs steps of the MLP on a mesh over all processes of the run.
class Steps {
 public:
  explicit Steps(const LayoutMap& layouts)
      : steps_(mlp_model(layouts), layouts, mlp_data(), mlp_batch_size) {}
  Json run(int64_t count) {
    std::vector<double> milliseconds, hidden;
    for (int64_t i = 0; i < count; ++i) {
      milliseconds.push_back(steps_.step());
      const ReductionTimes& times = steps_.model()->optimizer()->reducer().last_times();
      if (times.messages > 0) hidden.push_back(times.hidden());
    }
    return {{"milliseconds", milliseconds}, {"hidden", hidden}};
  }

 private:
  TrainingSteps steps_;
};

/// Runs fits of the MLP on a mesh over all processes of the run.
class Fits {
 public:
  explicit Fits(const LayoutMap& layouts) : model_(mlp_model(layouts)), data_(mlp_data()) {}
  /// Runs at least `count` steps; returns the mean of their times.
  Json run(int64_t count) {
    const int64_t epoch = data_.size() / mlp_batch_size, epochs = (count + epoch - 1) / epoch;
    const double seconds = seconds_of(
        [&] { model_.fit(data_, {.batch_size = mlp_batch_size, .epochs = epochs, .verbose = 0}); });
    return {{"milliseconds", {1e3 * seconds / static_cast<double>(epochs * epoch)}}};
  }

 private:
  Sequential model_;
  TensorDataset data_;
};

/// A configuration and its times.
struct ProcessRow {
  std::string name;
  /// Returns the "milliseconds" of each step, and the fraction of its reductions "hidden" behind
  /// the backward pass.
  std::function<Json(int64_t steps)> run;
  std::vector<double> rounds = {};  ///< median milliseconds of each round
  std::vector<double> hidden = {};  ///< median hidden fraction of each round, if known
  double best() const { return *std::min_element(rounds.begin(), rounds.end()); }
};

ProcessRow group_row(const std::string& name, int64_t processes,
                     const std::vector<std::string>& command, bool elastic = false) {
  const auto group = std::make_shared<WorkerGroup>(static_cast<int>(processes), command, elastic);
  return {name, [group](int64_t steps) { return group->run(steps); }};
}

std::vector<ProcessRow> make_process_rows(const ProcessFlags& flags) {
  const std::string count = std::to_string(flags.processes);
  const auto local = std::make_shared<Steps>(LayoutMap(create_mesh({{"batch", flags.processes}})));
  std::vector<ProcessRow> rows;
  rows.push_back(
      {"1 process, " + count + " devices", [local](int64_t steps) { return local->run(steps); }});
  const auto add = [&](const std::string& how, const std::string& option) {
    rows.push_back(group_row(count + " processes, " + how, flags.processes,
                             {own_program, "process-steps", option}));
  };
  add("shared memory", "--shared-memory");
  add("every collective compared", "--check-collectives");
  add("Gloo", "--no-shared-memory");
  if (!flags.torch.empty()) {
    rows.push_back(group_row("PyTorch DDP on Gloo, " + count + " processes", flags.processes,
                             {flags.torch, TESSERA_PEERS_DIR "/torch_ddp.py"}));
  }
  return rows;
}

/// Fits without and with snapshots in memory, of data parallelism and with all weights sharded.
std::vector<ProcessRow> make_elastic_rows(const ProcessFlags& flags) {
  std::vector<ProcessRow> rows;
  for (const std::string sharded : {"--no-fully-shard", "--fully-shard"}) {
    for (const bool elastic : {false, true}) {
      const std::string layouts = sharded == "--fully-shard" ? "fully sharded" : "data parallel";
      rows.push_back(group_row(layouts + (elastic ? ", elastic" : ""), flags.processes,
                               {own_program, "process-steps", "--fit", sharded}, elastic));
    }
  }
  return rows;
}

void add_process_round(ProcessRow& row, const Json& times) {
  row.rounds.push_back(median(times.at("milliseconds").get<std::vector<double>>()));
  const auto hidden = times.value("hidden", std::vector<double>());
  if (!hidden.empty()) row.hidden.push_back(median(hidden));
}

void print_process(const std::vector<ProcessRow>& rows, const ProcessFlags& flags) {
  app::Table table(
      {"step of the MLP", "ms per step", "worst round", "to one process", "reductions hidden"});
  for (const ProcessRow& row : rows) {
    table.add({row.name, app::fixed(row.best(), 3),
               app::fixed(*std::max_element(row.rounds.begin(), row.rounds.end()), 3),
               app::fixed(row.best() / rows[0].best(), 2),
               row.hidden.empty() ? "" : app::fixed(100 * median(row.hidden), 0) + " %"});
  }
  std::cout << "A training step (784-700-500-10, batch " << mlp_batch_size
            << ", Adam): the minimum over " << flags.rounds << " rounds of the median of "
            << flags.steps << " steps, in turns.\n\n"
            << table.to_string();
  if (flags.torch.empty()) {
    std::cout << "\nTo compare with PyTorch, pass --torch PYTHON, an interpreter that has it.\n";
    return;
  }
  const double ratio = rows[1].best() / rows.back().best();
  std::cout << "\nshared memory: " << app::fixed(ratio, 2) << " times PyTorch; at most "
            << app::fixed(process_max_ratio, 1)
            << (ratio <= process_max_ratio ? ": met\n" : ": missed\n");
}

void print_elastic(const std::vector<ProcessRow>& rows, const ProcessFlags& flags) {
  app::Table table({"step of fit", "ms per step", "worst round"});
  for (const ProcessRow& row : rows) {
    table.add({row.name, app::fixed(row.best(), 3),
               app::fixed(*std::max_element(row.rounds.begin(), row.rounds.end()), 3)});
  }
  std::cout << "fit (784-700-500-10, batch " << mlp_batch_size << ", Adam) on " << flags.processes
            << " processes, with a snapshot in memory every 10 steps: the minimum over "
            << flags.rounds << " rounds of the mean of " << flags.steps << " steps, in turns.\n\n"
            << table.to_string() << "\n";
  for (size_t i = 0; i < rows.size(); i += 2) {
    const double ratio = rows[i + 1].best() / rows[i].best();
    const double limit = i == 0 ? elastic_max_ratio : elastic_copies_max_ratio;
    std::cout << rows[i + 1].name << ": " << app::fixed(ratio, 3) << " times without; at most "
              << app::fixed(limit, 2) << (ratio <= limit ? ": met\n" : ": missed\n");
  }
}

void save_process(const std::vector<ProcessRow>& rows, const std::string& path) {
  Json list = Json::array();
  for (const ProcessRow& row : rows) {
    list.push_back({{"name", row.name},
                    {"rounds_ms", row.rounds},
                    {"best_ms", row.best()},
                    {"hidden", row.hidden}});
  }
  write_file_atomically(path, to_json_text({{"processes", list}}) + "\n");
}

}  // namespace

int process_steps(int argc, const char* const* argv) {
  DistributedOptions distributed;
  app::AppOptions options = app::AppOptions::bare("bench process-steps", "One rank of several.");
  options.add({"shared-memory", "Step", "whether processes of a host share memory",
               app::toggle(distributed.shared_memory)});
  options.add({"check-collectives", "Step", "whether ranks compare every collective",
               app::toggle(distributed.always_check)});
  bool fits = false, fully_shard = false;
  options.add({"fit", "Step", "run fits instead of steps", app::toggle(fits)});
  options.add({"fully-shard", "Step", "shard weights and slots", app::toggle(fully_shard)});
  if (!options.parse(argc, argv)) return 0;
  at::set_num_threads(1);
  const Mesh mesh = create_distributed_mesh({{"batch", -1}}, distributed);
  LayoutMap layouts(mesh);
  if (fully_shard) layouts.fully_shard("batch");
  const auto answer = [](auto work) {
    // Ranks of an elastic run follow the order in which its processes joined.
    const char* const slot = std::getenv("LOCAL_RANK");
    const bool answers = slot && std::string(slot) == "0";
    for (int64_t count = 0; std::cin >> count;) {
      const Json times = work.run(count);
      if (answers) std::cout << to_json_text(times, -1) << std::endl;
    }
  };
  if (fits) {
    answer(Fits(layouts));
  } else {
    answer(Steps(layouts));
  }
  return 0;
}

int bench_processes(int argc, const char* const* argv) {
  ProcessFlags flags;
  app::AppOptions options = app::AppOptions::bare(
      "bench processes",
      "Times a training step (784-700-500-10, batch 128, Adam) on several single-threaded "
      "processes, on as many devices of one process, and under PyTorch's DDP, in turns.");
  options.add({"processes", "Step", "number of processes", app::integer(flags.processes, 2, 64)});
  options.add({"torch", "Step", "Python interpreter with PyTorch, to compare with",
               app::input_file(flags.torch, "PYTHON")});
  options.add({"rounds", "Step", "rounds per configuration", app::integer(flags.rounds, 1, 1000)});
  options.add({"steps", "Step", "timed steps per round", app::integer(flags.steps, 1, 100000)});
  options.add({"elastic", "Step", "compare fits without and with snapshots in memory instead",
               app::toggle(flags.elastic)});
  options.add({"json", "Output", "file for the times", app::output_file(flags.json, "FILE.json")});
  if (!options.parse(argc, argv)) return 0;
  std::vector<ProcessRow> rows =
      flags.elastic ? make_elastic_rows(flags) : make_process_rows(flags);
  for (int64_t round = 0; round < flags.rounds; ++round) {
    for (ProcessRow& row : rows) {
      row.run(process_warm_up_steps);
      add_process_round(row, row.run(flags.steps));
    }
  }
  (flags.elastic ? print_elastic : print_process)(rows, flags);
  if (!flags.json.empty()) save_process(rows, flags.json);
  return 0;
}

}  // namespace tessera::bench
