#include <tessera/tessera.hpp>

#include <atomic>
#include <thread>

#include <ATen/ATen.h>
#include <rpc/parameter_server.grpc.pb.h>

#include <tessera/framework/parameter_server/internal/rpc_connection.hpp>
#include <tessera/framework/parameter_server/job/server_job.hpp>

#include "tests/parameter_server/job_tasks.hpp"
#include "tests/support/catch.hpp"

namespace job_test {

using namespace tessera;
using namespace tessera::detail;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using strategy::ClosureValue;
using strategy::ClusterCoordinator;
using strategy::ParameterServerStrategy;
using strategy::RemoteValue;
using strategy::WorkerContext;
using test::JobTasks;

namespace {

ClosureValue nothing(WorkerContext&) { return {}; }

void add_nothing(ParameterServerStrategy& strategy) { strategy.add_function("nothing", nothing); }

/// Waits for a condition, at most ten seconds.
template <class Condition>
bool soon(const Condition& condition) {
  for (int i = 0; i < 200; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(50ms);
  }
  return false;
}

/// A counter on the servers, and a function that increments it and may end the worker.
struct CountTask {
  explicit CountTask(ParameterServerStrategy& strategy, std::atomic<int>* dies = nullptr) {
    counter = Variable("counter", pack(at::zeros({}), Layout::replicated(strategy.mesh(), 0)));
    strategy.place({counter}, optimizer);
    strategy.add_function("count", [this, dies](WorkerContext& worker) -> ClosureValue {
      const DTensor minus_one = pack(at::full({}, -1.), counter.layout());
      optimizer->apply({minus_one}, {counter});
      // After the update, but before the coordinator knows of it.
      if (dies != nullptr && worker.closure() >= 20 && dies->fetch_sub(1) > 0) {
        throw Interrupted(SIGTERM, "worker", "on purpose", "");
      }
      return {};
    });
  }
  Variable counter;
  OptimizerHandle optimizer = SGD(1.0);
};

}  // namespace

TEST_CASE("a worker that leaves in a closure returns, and nothing counts twice") {
  const JobTasks job(1, 1);
  std::atomic<int> dies{2};
  const JobTasks::Program program = [&](ParameterServerStrategy& strategy) {
    CountTask task(strategy, &dies);
    strategy.join();
  };
  auto server = job.start(TaskType::ps, 0, program);
  auto chief = job.start(TaskType::chief, 0, [](ParameterServerStrategy& strategy) {
    CountTask task(strategy);
    ClusterCoordinator coordinator(strategy);
    for (int i = 0; i < 60; ++i) coordinator.schedule("count");
    coordinator.join();
    const auto counts = coordinator.counts();
    CHECK(counts.done == 60);
    CHECK(counts.rescheduled == 2);
    CHECK(counts.workers_lost == 2);
    CHECK(counts.updates == std::vector<int64_t>{60});
    coordinator.pull();
    CHECK(task.counter.value().full().item<double>() == 60);
  });
  for (int life = 0; life < 3; ++life) {
    auto worker = job.start(TaskType::worker, 0, program);
    CHECK_THAT(test::end_of(worker), life < 2 ? Contains("on purpose") : Contains(""));
  }
  CHECK(test::end_of(chief) == "");
  CHECK(test::end_of(server) == "");
}

TEST_CASE("a lost parameter server ends the job on all tasks and is named") {
  const JobTasks job(1, 2);
  std::atomic<bool> leave{false};
  auto stays = job.start(TaskType::ps, 0, JobTasks::joining(add_nothing));
  auto worker = job.start(TaskType::worker, 0, JobTasks::joining(add_nothing));
  auto goes = job.start(TaskType::ps, 1, [&](ParameterServerStrategy& strategy) {
    add_nothing(strategy);
    CHECK(soon([&] { return leave.load(); }));
  });
  auto chief = job.start(TaskType::chief, 0, [&](ParameterServerStrategy& strategy) {
    add_nothing(strategy);
    ClusterCoordinator coordinator(strategy);
    coordinator.schedule("nothing").fetch();
    leave = true;
    std::string error;
    CHECK(soon([&] { return !(error = test::error_of([&] { coordinator.done(); })).empty(); }));
    CHECK_THAT(error, Contains("ps 1 (" + job.address(TaskType::ps, 1) + ")"));
    CHECK_THAT(error, Contains("is lost") && Contains("the last checkpoint stays"));
    CHECK_THROWS_AS(coordinator.schedule("nothing"), CommError);
    CHECK_THROWS_AS(coordinator.join(), CommError);
    CHECK_THROWS_AS(coordinator.pull(), CommError);
  });
  CHECK(test::end_of(chief) == "");
  CHECK(test::end_of(goes) == "");
  CHECK_THAT(test::end_of(stays), Contains("ps 1 ("));
  CHECK_THAT(test::end_of(worker), Contains("ps 1 (") && Contains("is lost"));
}

TEST_CASE("tasks end with the error that ended the coordinator's program") {
  const JobTasks job(1, 1);
  auto tasks = job.start_all(add_nothing);
  auto chief = job.start(TaskType::chief, 0, [](ParameterServerStrategy& strategy) {
    add_nothing(strategy);
    ClusterCoordinator coordinator(strategy);
    coordinator.schedule("something");
  });
  CHECK_THAT(test::end_of(chief), Contains("\"something\""));
  for (auto& task : tasks) CHECK_THAT(test::end_of(task), Contains("\"something\""));
}

TEST_CASE("tasks without a coordinator end") {
  JobTasks job(1, 1, true);
  job.connect_timeout = 2s;
  auto tasks = job.start_all(add_nothing);
  // The test acts as coordinator for the parameter server; the other tasks never see one.
  const auto stub = rpc::Task::NewStub(make_channel(job.address(TaskType::ps)));
  CHECK(soon([&] {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 10s);
    const auto stream = stub->Attend(&context);
    rpc::CoordinatorHeartbeat heartbeat;
    heartbeat.set_job("0123456789abcdef");
    rpc::TaskHeartbeat answer;
    const bool heard = stream->Write(heartbeat) && stream->Read(&answer);
    context.TryCancel();
    stream->Finish();
    return heard;
  }));
  CHECK_THAT(test::end_of(tasks[1]), Contains("the coordinator (") && Contains("is lost"));
  CHECK_THAT(test::end_of(tasks[0]), Contains("has not come within 2 s"));
  CHECK_THAT(test::end_of(tasks[2]), Contains("has not come within 2 s"));
}

TEST_CASE("variables and optimizers are placed once") {
  const JobTasks job(1, 1);
  auto server = job.start(TaskType::ps, 0, [](ParameterServerStrategy& strategy) {
    const CountTask task(strategy);
    const Variable other("other", pack(at::zeros({}), Layout::replicated(strategy.mesh(), 0)));
    CHECK_THROWS_WITH(strategy.place({other}, task.optimizer), Contains("an optimizer is placed"));
    CHECK_THROWS_WITH(strategy.place({other, task.counter}, SGD()),
                      Contains("a variable is placed once. Received: counter again"));
    strategy.place({other}, {});
  });
  CHECK(test::end_of(server) == "");
}

TEST_CASE("tasks with a different program are told what differs") {
  const auto set_up = [](ParameterServerStrategy& strategy, int64_t units) {
    add_nothing(strategy);
    const Variable kernel("kernel",
                          pack(at::zeros({2, units}), Layout::replicated(strategy.mesh(), 2)));
    strategy.place({kernel}, SGD());
  };
  SECTION("variables of a worker") {
    const JobTasks job(1, 1);
    const auto make = [&](int64_t units) {
      return [=](ParameterServerStrategy& strategy) {
        set_up(strategy, units);
        strategy.join();
      };
    };
    auto server = job.start(TaskType::ps, 0, make(3));
    auto worker = job.start(TaskType::worker, 0, make(4));
    auto chief = job.start(TaskType::chief, 0, [&](ParameterServerStrategy& strategy) {
      set_up(strategy, 3);
      const ClusterCoordinator coordinator(strategy);
    });
    for (auto* task : {&chief, &worker, &server}) {
      CHECK_THAT(test::end_of(*task),
                 Contains("worker 0 (") && Contains("same program") && Contains("group 0"));
    }
  }
  SECTION("functions of a worker") {
    const JobTasks job(1, 1);
    auto server = job.start(TaskType::ps, 0, JobTasks::joining(add_nothing));
    auto worker = job.start(TaskType::worker, 0, JobTasks::joining([](auto&) {}));
    auto chief = job.start(TaskType::chief, 0, [&](ParameterServerStrategy& strategy) {
      add_nothing(strategy);
      const ClusterCoordinator coordinator(strategy);
    });
    CHECK_THAT(test::end_of(chief), Contains("no function \"nothing\""));
    CHECK_THAT(test::end_of(worker), Contains("no function \"nothing\""));
    CHECK(test::end_of(server) != "");
  }
}

TEST_CASE("a second coordinator is refused, and the first one continues") {
  // Without an evaluator: the first coordinator does not wait for one, so the second might get it.
  const JobTasks job(1, 1);
  auto tasks = job.start_all(add_nothing);
  auto chief = job.start(TaskType::chief, 0, [&](ParameterServerStrategy& strategy) {
    add_nothing(strategy);
    ClusterCoordinator coordinator(strategy);
    auto second = job.start(TaskType::chief, 0, [&](ParameterServerStrategy& other) {
      add_nothing(other);
      const ClusterCoordinator refused(other);
    });
    CHECK_THAT(test::end_of(second), Contains("one coordinator at a time"));
    coordinator.schedule("nothing").fetch();
  });
  CHECK(test::end_of(chief) == "");
  CHECK(test::ends_of(tasks) == "");
}

TEST_CASE("ports in use and clusters that lack tasks are errors that name the key") {
  const JobTasks job(2, 1);
  const ParameterServerStrategy first(job.options(TaskType::worker, 1));
  const auto again = [&] {
    const ParameterServerStrategy second(job.options(TaskType::worker, 1));
  };
  CHECK_THAT(test::error_of(again), Contains("[TF_CONFIG: cluster.worker[1]]") &&
                                        Contains(job.address(TaskType::worker, 1)));
  CHECK_FALSE(first.job_over());

  const auto error_without = [&](TaskType type) {
    auto options = job.options(TaskType::worker, 0);
    std::erase_if(options.cluster.tasks, [&](const auto& entry) { return entry.first == type; });
    return test::error_of([&] { const ParameterServerStrategy strategy(options); });
  };
  CHECK_THAT(error_without(TaskType::chief), Contains("[TF_CONFIG: cluster.chief]"));
  CHECK_THAT(error_without(TaskType::worker), Contains("[TF_CONFIG: cluster.worker]"));
  CHECK_THAT(error_without(TaskType::ps), Contains("[TF_CONFIG: cluster.ps]"));
  auto alone = job.options(TaskType::worker, 0);
  alone.cluster.tasks.clear();
  CHECK_THROWS_AS(ParameterServerStrategy(alone), ConfigError);
}

TEST_CASE("invalid calls to tasks are refused, and the job continues") {
  const JobTasks job(1, 1);
  auto tasks = job.start_all(add_nothing);
  auto chief = job.start(TaskType::chief, 0, [&](ParameterServerStrategy& strategy) {
    add_nothing(strategy);
    ClusterCoordinator coordinator(strategy);
    const auto channel = make_channel(job.address(TaskType::worker));
    const auto worker = rpc::Worker::NewStub(channel);
    const auto run = [&](const rpc::RunRequest& request) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + 10s);
      rpc::RunReply reply;
      return worker->Run(&context, request, &reply).error_code();
    };
    rpc::RunRequest request;
    CHECK(run(request) == grpc::StatusCode::FAILED_PRECONDITION);
    request.set_job(strategy.job().job_name());
    CHECK(run(request) == grpc::StatusCode::INVALID_ARGUMENT);
    request.set_closure(1);
    request.set_done_below(2);
    CHECK(run(request) == grpc::StatusCode::INVALID_ARGUMENT);
    request.set_done_below(1);
    request.set_groups(-1);
    CHECK(run(request) == grpc::StatusCode::INVALID_ARGUMENT);

    const auto attend = [&](const std::string& name) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + 10s);
      const auto stream = rpc::Task::NewStub(channel)->Attend(&context);
      rpc::CoordinatorHeartbeat heartbeat;
      heartbeat.set_job(name);
      rpc::TaskHeartbeat answer;
      stream->Write(heartbeat);
      CHECK_FALSE(stream->Read(&answer));
      return stream->Finish().error_code();
    };
    CHECK(attend("") == grpc::StatusCode::INVALID_ARGUMENT);
    CHECK(attend(std::string(1 << 20, 'x')) == grpc::StatusCode::INVALID_ARGUMENT);
    CHECK(attend("0123456789abcdef") == grpc::StatusCode::FAILED_PRECONDITION);
    CHECK(attend(strategy.job().job_name()) == grpc::StatusCode::FAILED_PRECONDITION);
    coordinator.schedule("nothing").fetch();
  });
  CHECK(test::end_of(chief) == "");
  CHECK(test::ends_of(tasks) == "");
}

}  // namespace job_test
