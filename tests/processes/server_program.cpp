// One task of a parameter server job whose closures each increment every weight, with an optional
// planted fault: in the end every weight is the number of closures.
#include <chrono>
#include <cstdio>
#include <thread>

#include <ATen/ATen.h>

#include <tessera/framework/parameter_server/cluster_coordinator.hpp>
#include <tessera/framework/parameter_server/parameter_server_strategy.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/run_app.hpp"
#include "tests/processes/planted_fault.hpp"

namespace tessera::test {

using namespace detail;

namespace {

using strategy::ClosureValue;

std::vector<Variable> counters(const Mesh& mesh) {
  std::vector<Variable> all;
  for (const int64_t size : {4, 5, 3, 7}) {
    const DTensor zeros = filled({size}, 0, at::kFloat, Layout({nullptr}, mesh));
    all.emplace_back(str("count_", size), zeros, size != 7);
  }
  return all;
}

void count(const std::vector<Variable>& all, OptimizerHandle optimizer) {
  std::vector<Variable> trained;
  std::vector<DTensor> gradients;
  for (Variable variable : all) {
    const DTensor one = filled(variable.shape(), 1, at::kFloat, variable.layout());
    if (!variable.trainable()) {
      variable.assign_add(one);
      continue;
    }
    trained.push_back(variable);
    gradients.push_back(-one);
  }
  optimizer->apply(gradients, trained);
}

void coordinate(const strategy::ParameterServerStrategy& strategy, const Arguments& arguments,
                const std::vector<Variable>& all, const Fault& fault) {
  strategy::ClusterCoordinator coordinator(strategy);
  for (int64_t i = 0; i < arguments.number("closures", 40); ++i) coordinator.schedule("count");
  int64_t done = 0;
  while (const auto value = coordinator.next_done()) {
    std::printf("done %lld\n", static_cast<long long>(++done));
    std::fflush(stdout);
    fault.at("done", done);
  }
  coordinator.pull();
  const auto counts = coordinator.counts();
  for (const int64_t of_worker : counts.done_by_worker) {
    std::printf("by a worker %lld\n", static_cast<long long>(of_worker));
  }
  std::printf("rescheduled %lld lost %lld\n", static_cast<long long>(counts.rescheduled),
              static_cast<long long>(counts.workers_lost));
  for (const Variable& variable : all) {
    const at::Tensor full = variable.value().full();
    std::printf("count %g %g\n", full.min().item<double>(), full.max().item<double>());
  }
}

int run(int argc, char** argv) {
  const Arguments arguments(argc, argv);
  const auto time = [&](const char* name, int64_t otherwise) {
    return std::chrono::milliseconds(arguments.number(name, otherwise));
  };
  strategy::ParameterServerStrategy strategy(
      {.connect_timeout = time("connect_timeout", 60000), .timeout = time("timeout", 30000)});
  const std::string task = str(to_string(strategy.task_type()), " ", strategy.task_index());
  const bool again = std::getenv("TESSERA_RESTART") != nullptr;
  const Fault fault{arguments.text("fault"), arguments.text("at"), arguments.number("step", 0),
                    !again && task == arguments.text("task")};
  fault.at("start", 0);
  const std::vector<Variable> all = counters(strategy.mesh());
  const OptimizerHandle optimizer = SGD(1.0);
  strategy.place(all, optimizer);
  int64_t calls = 0;
  strategy.add_function("count", [&](strategy::WorkerContext&) {
    fault.at("before", ++calls);
    count(all, optimizer);
    fault.at("after", calls);
    std::this_thread::sleep_for(time("pause", 20));
    return ClosureValue{};
  });
  if (!strategy.is_coordinator()) return strategy.join();
  coordinate(strategy, arguments, all, fault);
  return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, tessera::test::run); }
