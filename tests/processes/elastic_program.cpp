// One of the processes of an elastic run, which come and go.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <tessera/framework/comm/distributed.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/run_app.hpp"
#include "tests/processes/planted_fault.hpp"
#include "tests/processes/world_size_networks.hpp"

namespace tessera::test {

using namespace detail;

namespace {

/// Tells of each step and of each change of the processes, pauses, and has the fault.
struct Steps : Callback {
  Steps(Fault planted, int64_t pause_in_ms) : fault(std::move(planted)), pause(pause_in_ms) {}
  void on_train_batch_end(int64_t, const Logs&) override {
    const int64_t step = model().optimizer()->steps();
    std::printf("pid %d step %lld\n", ::getpid(), static_cast<long long>(step));
    std::fflush(stdout);
    std::this_thread::sleep_for(pause);
    fault.at("step", step);
  }
  bool wants_batch_logs(int64_t) override { return false; }
  void on_membership_change(const MembershipChange& change) override {
    std::printf("pid %d now %lld processes\n", ::getpid(),
                static_cast<long long>(change.processes));
    std::fflush(stdout);
  }
  Fault fault;
  std::chrono::milliseconds pause;
};

/// Trains, and prints the hash of all that it gives and the number of steps.
void train(const Mesh& mesh, const Arguments& arguments, const Fault& fault) {
  // The last batch is smaller, and has fewer rows than some meshes have devices.
  const WorldSizeNetwork network =
      world_size_network("mlp", false, {24 * arguments.number("batches", 4) + 5, 21});
  CompileOptions compile{.optimizer = Adam(1e-2),
                         .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                         .metrics = {"accuracy"}};
  compile.layouts = world_size_layouts(arguments.text("layouts", "data"), mesh, network);
  compile.world_size_invariant = true;
  network.model.compile(compile);
  FitOptions fit{.batch_size = 24,
                 .epochs = 2,
                 .verbose = 0,
                 .callbacks = {Steps(fault, arguments.number("pause", 0))},
                 .validation_data = network.validation,
                 .elastic = {.min_processes = arguments.number("min_processes", 1),
                             .snapshot_every = arguments.number("snapshot", 10)}};
  if (!arguments.text("backup").empty()) {
    fit.callbacks.emplace_back(BackupAndRestore(
        arguments.text("backup"),
        {.save_freq = static_cast<int>(arguments.number("every", 5)), .delete_checkpoint = false}));
  }
  const History history = network.model.fit(network.data, fit);
  std::printf("bits %s of %zu steps\n", digest_in_full(network.model, history).c_str(),
              history.steps.size());
}

int run(int argc, char** argv) {
  const Arguments arguments(argc, argv);
  const StopSignals signals;
  // A process of an elastic run has a number, but a rank only in each generation.
  const char* number = std::getenv("LOCAL_RANK");
  const Fault fault{arguments.text("fault"), arguments.text("at"), arguments.number("step", 0),
                    number && arguments.text("rank") == number, arguments.number("delay", 0)};
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
