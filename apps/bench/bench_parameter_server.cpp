#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/cluster/launcher/launcher.hpp>
#include <tessera/framework/parameter_server/parameter_server_strategy.hpp>
#include <tessera/framework/training/callbacks/occasional_weight_reader.hpp>

#include "apps/bench/bench.hpp"
#include "apps/bench/models.hpp"
#include "apps/common/app_options.hpp"
#include "apps/common/table.hpp"
#include "apps/common/temporary_folder.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

struct ServerFlags {
  std::vector<int64_t> workers = {1, 2, 4};
  int64_t servers = 2;
  int64_t rounds = 3;
  int64_t steps = 60;
  std::string json;
};

/// The MLP's batches, repeated.
class Repeated final : public Dataset {
 public:
  explicit Repeated(int64_t steps) : data_(mlp_data()), size_(steps * mlp_batch_size) {}
  int64_t size() const override { return size_; }
  Examples get(std::span<const int64_t> rows) const override {
    std::vector<int64_t> inside;
    for (const int64_t row : rows) inside.push_back(row % data_.size());
    return data_.get(inside);
  }
  std::vector<Shape> input_shapes() const override { return data_.input_shapes(); }

 private:
  TensorDataset data_;
  int64_t size_;
};

/// Measures steps per second of every epoch, without its first and last step, so that work done
/// once per epoch is not counted.
class Pace final : public Callback, public OccasionalWeightReader {
 public:
  using Clock = std::chrono::steady_clock;
  void on_train_batch_end(int64_t batch, const Logs&) override {
    if (batch == 0) begin_ = Clock::now();
    if (batch + 2 != *params().steps) return;
    const std::chrono::duration<double> taken = Clock::now() - begin_;
    paces_.push_back(static_cast<double>(batch) / taken.count());
  }
  bool wants_batch_logs(int64_t) override { return false; }
  std::optional<int64_t> batches_to_weights() override { return std::nullopt; }
  /// Returns the values of all epochs but the first, a warm-up; none on tasks without callbacks.
  std::vector<double> paces() const {
    return {paces_.begin() + (paces_.empty() ? 0 : 1), paces_.end()};
  }

 private:
  Clock::time_point begin_;
  std::vector<double> paces_;
};

std::vector<double> train(const ServerFlags& flags) {
  const auto pace = std::make_shared<Pace>();
  const Sequential model = mlp_model({});
  model.fit(Repeated(flags.steps), {.batch_size = mlp_batch_size,
                                    .epochs = 1 + flags.rounds,
                                    .verbose = 0,
                                    .callbacks = {pace}});
  return pace->paces();
}

void add_step_options(app::AppOptions& options, ServerFlags& flags) {
  options.add({"rounds", "Step", "timed epochs", app::integer(flags.rounds, 1, 1000)});
  options.add({"steps", "Step", "steps per epoch", app::integer(flags.steps, 4, 100000)});
}

struct ServerRow {
  int64_t workers = 0;  ///< 0: without parameter servers
  std::vector<double> paces;
  double best() const { return *std::max_element(paces.begin(), paces.end()); }
};

/// Runs a job whose tasks are processes of this program.
ServerRow run_job(const ServerFlags& flags, int64_t workers) {
  const app::TemporaryDirectory folder;
  const std::string file = folder.path() + "/paces.json";
  const std::vector<std::string> command = {
      "/proc/self/exe", "parameter-server-task", "--rounds", str(flags.rounds),
      "--steps",        str(flags.steps),        "--json",   file};
  const int code = launch(command, {.processes = static_cast<int>(workers),
                                    .servers = static_cast<int>(flags.servers)});
  if (code != 0) {
    throw StateError("bench", "every task must succeed", str("exit code ", code), "see its output");
  }
  return {workers, parse_json(read_file(file), file).get<std::vector<double>>()};
}

void print_server(const std::vector<ServerRow>& rows, const ServerFlags& flags) {
  app::Table table({"fit of the MLP", "steps per second", "worst round", "to one worker"});
  for (const ServerRow& row : rows) {
    table.add({row.workers == 0 ? "one process, no servers" : str(row.workers, " workers"),
               app::fixed(row.best(), 1),
               app::fixed(*std::min_element(row.paces.begin(), row.paces.end()), 1),
               row.workers == 0 ? "" : app::fixed(row.best() / rows[1].best(), 2)});
  }
  std::cout << "Steps (784-700-500-10, batch " << mlp_batch_size << ", Adam) of fit with "
            << flags.servers << " parameter servers, processes of one thread: the best of "
            << flags.rounds << " epochs of " << flags.steps << " steps.\n\n"
            << table.to_string();
}

void save_server(const std::vector<ServerRow>& rows, const ServerFlags& flags) {
  Json list = Json::array();
  for (const ServerRow& row : rows) {
    list.push_back({{"workers", row.workers},
                    {"servers", row.workers == 0 ? 0 : flags.servers},
                    {"steps_per_second", row.paces},
                    {"best", row.best()}});
  }
  write_file_atomically(flags.json, to_json_text({{"parameter_server", list}}) + "\n");
}

}  // namespace

int parameter_server_task(int argc, const char* const* argv) {
  ServerFlags flags;
  app::AppOptions options =
      app::AppOptions::bare("bench parameter-server-task", "One task of several.");
  add_step_options(options, flags);
  options.add({"json", "Output", "file for the times", app::output_file(flags.json, "FILE.json")});
  if (!options.parse(argc, argv)) return 0;
  strategy::ParameterServerStrategy strategy;
  const auto scope = strategy.scope();
  const std::vector<double> paces = train(flags);
  if (strategy.is_coordinator()) write_file_atomically(flags.json, to_json_text(paces) + "\n");
  return 0;
}

int bench_parameter_server(int argc, const char* const* argv) {
  ServerFlags flags;
  app::AppOptions options = app::AppOptions::bare(
      "bench parameter-server",
      "Times fit's steps (784-700-500-10, batch 128, Adam) with parameter servers and several "
      "numbers of workers, each a process of one thread.");
  options.add({"workers", "Step", "numbers of workers", app::integers(flags.workers, 1)});
  options.add({"servers", "Step", "parameter servers", app::integer(flags.servers, 1, 64)});
  add_step_options(options, flags);
  options.add({"json", "Output", "file for the times", app::output_file(flags.json, "FILE.json")});
  if (!options.parse(argc, argv)) return 0;
  // Jobs come first, since they must be launched before this process starts threads.
  ::setenv("OMP_NUM_THREADS", "1", 1);
  std::vector<ServerRow> rows(1);
  for (const int64_t workers : flags.workers) rows.push_back(run_job(flags, workers));
  at::set_num_threads(1);
  rows[0].paces = train(flags);
  print_server(rows, flags);
  if (!flags.json.empty()) save_server(rows, flags);
  return 0;
}

}  // namespace tessera::bench
