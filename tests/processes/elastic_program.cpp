// One of the processes of an elastic run, which come and go.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/comm/internal/elastic_run.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/checkpoints.hpp"
#include "apps/common/run_app.hpp"
#include "tests/processes/planted_fault.hpp"
#include "tests/processes/world_size_networks.hpp"

namespace tessera::test {

using namespace detail;

namespace {

using Clock = std::chrono::steady_clock;

/// Tells of each step and of each change of the processes, pauses, waits at step `await` until
/// another joins if one was lost and not replaced at once, and has the fault: at a "step", in a
/// "snapshot" or checkpoint before its tensors are taken, while the one before a step is being
/// "sent", when the others meet after a "change", or when their state is to be "restored" to the
/// callbacks, which is after the tensors were fetched and before they are assigned.
struct Steps : Callback {
  Steps(Fault planted, int64_t pause_in_ms, int64_t await_at)
      : fault(std::move(planted)), pause(pause_in_ms), await(await_at) {}
  std::string class_name() const override { return "Steps"; }
  void on_train_batch_begin(int64_t) override {
    if (last_end && changed) {
      const std::chrono::duration<double> taken = Clock::now() - *last_end;
      std::printf("pid %d back after %.3f s\n", ::getpid(), taken.count());
      std::fflush(stdout);
    }
    changed = false;
    fault.at("sent", model().optimizer()->steps());
  }
  void on_train_batch_end(int64_t, const Logs&) override {
    const int64_t step = model().optimizer()->steps();
    std::printf("pid %d step %lld\n", ::getpid(), static_cast<long long>(step));
    std::fflush(stdout);
    std::this_thread::sleep_for(pause);
    if (lost && step == await) {
      while (!ElasticRun::current()->is_outdated()) std::this_thread::sleep_for(pause);
    }
    last_end = Clock::now();
    fault.at("step", step);
  }
  bool wants_batch_logs(int64_t) override { return false; }
  void on_train_begin() override {
    const ElasticRun* const run = ElasticRun::current();
    if (run) processes = std::ssize(run->membership().members);
  }
  void on_membership_change(const MembershipChange& change) override {
    std::printf("pid %d now %lld processes\n", ::getpid(),
                static_cast<long long>(change.processes));
    std::fflush(stdout);
    changed = true;
    lost = !change.reason.empty() && change.processes < processes;
    processes = std::max(processes, change.processes);
    fault.at("change", ++changes);
  }
  Json state() const override {
    fault.at("snapshot", model().optimizer()->steps());
    return "kept";
  }
  void restore(const Json&, const NamedTensors&) override { fault.at("restored", changes); }
  Fault fault;
  std::chrono::milliseconds pause;
  int64_t await;
  int64_t changes = 0, processes = 0;
  bool changed = false, lost = false;
  std::optional<Clock::time_point> last_end;
};

/// Adds losses and metrics of a fit to those of the fits before it.
void append(History& all, const History& fit) {
  all.steps.insert(all.steps.end(), fit.steps.begin(), fit.steps.end());
  for (size_t i = 0; i < fit.epoch.size(); ++i) {
    Logs logs;
    for (const auto& [name, course] : fit.history) logs.emplace_back(name, course[i]);
    all.append(std::ssize(all.epoch), logs);
  }
}

/// Trains, and prints the hash of all that it gives and the number of steps.
void train(const Mesh& mesh, const Arguments& arguments, const Fault& fault) {
  // The last batch is smaller, and has fewer rows than some meshes have devices.
  const WorldSizeNetwork network = world_size_network(
      arguments.text("network", "mlp"), false, {24 * arguments.number("batches", 4) + 5, 21});
  AdamOptions adam;
  const int64_t accumulated = arguments.number("accumulate", 1);
  if (accumulated > 1) adam.gradient_accumulation_steps = accumulated;
  // The second metric's sums depend on the order in which they are added up.
  CompileOptions compile{
      .optimizer = Adam(1e-2, adam),
      .loss = SparseCategoricalCrossentropy({.from_logits = true}),
      .metrics = {"accuracy", metrics::SparseCategoricalCrossentropy({.from_logits = true})}};
  compile.layouts = world_size_layouts(arguments.text("layouts", "data"), mesh, network);
  compile.world_size_invariant = true;
  network.model.compile(compile);
  FitOptions fit{
      .batch_size = 24,
      .epochs = arguments.number("epochs", 2),
      .verbose = 0,
      .callbacks = {Steps(fault, arguments.number("pause", 0), arguments.number("await", -1))},
      .validation_data = network.validation,
      .elastic = {.min_processes = arguments.number("min_processes", 1),
                  .snapshot_every = arguments.number("snapshot", 10)}};
  if (!arguments.text("backup").empty()) {
    fit.callbacks.emplace_back(BackupAndRestore(
        arguments.text("backup"),
        {.save_freq = static_cast<int>(arguments.number("every", 5)), .delete_checkpoint = false}));
  }
  if (!arguments.text("checkpoints").empty()) {
    app::CheckpointFlags flags{.folder = arguments.text("checkpoints"), .save_every = 4};
    app::complete_checkpoint_options(flags);
    Shape shape = network.data.input_shapes()[0];
    shape.insert(shape.begin(), -1);
    network.model.build(shape);
    fit.callbacks.emplace_back(std::make_shared<app::RunCheckpoints>(network.model, flags));
  }
  History history;
  for (int64_t number = 0; number < arguments.number("fits", 1); ++number) {
    append(history, network.model.fit(network.data, fit));
  }
  std::printf("bits %s of %zu steps\n", digest_in_full(network.model, history).c_str(),
              history.steps.size());
}

int run(int argc, char** argv) {
  const Arguments arguments(argc, argv);
  const StopSignals signals;
  // A process of an elastic run has a number, but a rank only in each generation. One that was
  // started again has no fault.
  const char* number = std::getenv("LOCAL_RANK");
  const bool here = number && arguments.text("rank") == number && !std::getenv("TESSERA_RESTART");
  const Fault fault{arguments.text("fault"), arguments.text("at"), arguments.number("step", 0),
                    here, arguments.number("delay", 0)};
  set_random_seed(7);
  const Mesh mesh = create_distributed_mesh(
      parse_mesh_dims(arguments.text("mesh")),
      {.connect_timeout = std::chrono::minutes(1), .timeout = std::chrono::minutes(1)});
  train(mesh, arguments, fault);
  return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, tessera::test::run); }
