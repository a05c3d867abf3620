#include <tessera/tessera.hpp>

#include <memory>
#include <mutex>
#include <set>

#include <ATen/ATen.h>

#include <tessera/framework/parameter_server/internal/rpc_value.hpp>

#include "tests/parameter_server/job_tasks.hpp"
#include "tests/support/catch.hpp"

namespace coordinator_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using strategy::ClosureValue;
using strategy::ClusterCoordinator;
using strategy::InputContext;
using strategy::ParameterServerStrategy;
using strategy::PerWorkerDataset;
using strategy::RemoteValue;
using strategy::WorkerContext;
using test::JobTasks;

namespace {

ClosureValue number(const Json& json) { return {.json = json}; }

/// Adds functions without variables.
void add_plain_functions(ParameterServerStrategy& strategy) {
  strategy.add_function("double", [](WorkerContext& worker) {
    ClosureValue result = worker.arguments();
    result.json = 2 * result.json.get<int64_t>();
    for (at::Tensor& tensor : result.tensors) tensor = tensor * 2;
    return result;
  });
  strategy.add_function("throw", [](WorkerContext& worker) -> ClosureValue {
    throw ShapeError("matmul", "a matrix", str("closure ", worker.closure()), "");
  });
}

/// The tf.distribute guide's model, trained by a custom loop on the constant example.
struct GuideTask {
  explicit GuideTask(ParameterServerStrategy& strategy)
      : model(strategy.run([] {
          return Sequential({Input({1}), Dense(1, {.kernel_initializer = Constant(-0.38224268),
                                                   .kernel_regularizer = L2(1e-4)})});
        })) {
    strategy.place(model.weights(), optimizer);
    strategy.add_dataset("train",
                         [](const InputContext&) {
                           return DatasetHandle(at::ones({1000, 1}), at::ones({1000, 1}));
                         },
                         {.batch_size = 16});
    strategy.add_function("step", [this](WorkerContext& worker) { return step(worker); });
  }

  ClosureValue step(WorkerContext& worker) {
    const Batch batch = worker.next().value();
    const BinaryCrossentropy loss_object({.from_logits = true});
    std::vector<DTensor> values;
    for (const Variable& variable : model.trainable_weights()) values.push_back(variable.value());
    GradientTape tape;
    const DTensor loss = (*loss_object)(batch.y[0], model(batch.x[0], {.training = true})) +
                         strategy::scale_regularization_loss(model->losses());
    optimizer->apply(tape.gradient(loss, values), model.trainable_weights());
    return number(loss.full().item<double>());
  }

  Sequential model;
  OptimizerHandle optimizer = SGD(0.05);
};

}  // namespace

TEST_CASE("closures return values; done, next_done and cancel_waiting count them") {
  const JobTasks job(2, 1);
  auto tasks = job.start_all(add_plain_functions);
  auto chief = job.start(TaskType::chief, 0, [](ParameterServerStrategy& strategy) {
    add_plain_functions(strategy);
    ClusterCoordinator coordinator(strategy);
    CHECK(coordinator.done());
    CHECK_FALSE(coordinator.next_done().has_value());
    std::vector<RemoteValue> values;
    for (int i = 0; i < 40; ++i) {
      values.push_back(coordinator.schedule("double", {.json = i, .tensors = {at::ones({2}) * i}}));
    }
    for (int i = 0; i < 40; ++i) {
      CHECK(values[static_cast<size_t>(i)].fetch().json == 2 * i);
      CHECK(at::equal(values[static_cast<size_t>(i)].fetch().tensors.at(0), at::ones({2}) * 2 * i));
      CHECK(values[static_cast<size_t>(i)].closure() == i + 1);
      CHECK(values[static_cast<size_t>(i)].ready());
    }
    coordinator.join();
    CHECK(coordinator.done());

    std::set<int64_t> seen;
    for (int i = 0; i < 10; ++i) coordinator.schedule("double", number(i));
    while (const auto next = coordinator.next_done()) seen.insert(next->closure());
    CHECK(seen.size() == 10);
    CHECK(*seen.begin() == 41);

    std::vector<RemoteValue> many;
    for (int i = 0; i < 200; ++i) many.push_back(coordinator.schedule("double", number(i)));
    const int64_t cancelled = coordinator.cancel_waiting();
    coordinator.join();
    CHECK(coordinator.counts().done == 50 + 200 - cancelled);
    for (size_t i = 0; i < many.size(); ++i) {
      const bool done = static_cast<int64_t>(i) < 200 - cancelled;
      CHECK(test::error_of([&] { many[i].fetch(); }).empty() == done);
    }
    const auto counts = coordinator.counts();
    CHECK(counts.done_by_worker.at(0) + counts.done_by_worker.at(1) == counts.done);
    CHECK(counts.scheduled == 250);
  });
  CHECK(test::end_of(chief) == "");
  CHECK(test::ends_of(tasks) == "");
}

TEST_CASE("a closure's error names worker, closure and function, and cancels the rest") {
  const JobTasks job(1, 1);
  auto tasks = job.start_all(add_plain_functions);
  auto chief = job.start(TaskType::chief, 0, [](ParameterServerStrategy& strategy) {
    add_plain_functions(strategy);
    ClusterCoordinator coordinator(strategy);
    coordinator.schedule("double", number(1));
    const RemoteValue failed = coordinator.schedule("throw");
    std::vector<RemoteValue> later;
    while (!failed.ready()) {
      const std::string early =
          test::error_of([&] { later.push_back(coordinator.schedule("double", number(2))); });
      if (early.empty()) continue;
      CHECK_THAT(early, Contains("[worker 0, closure 2, throw]") && Contains("closure 2"));
    }
    const std::string joined = test::error_of([&] { coordinator.join(); });
    CHECK_THAT(test::error_of([&] { failed.fetch(); }), Contains("[matmul] a matrix"));
    // It is thrown once.
    CHECK(test::error_of([&] { coordinator.join(); }) == "");
    CHECK(coordinator.fetch(coordinator.schedule("double", number(4))).json == 8);

    CHECK_THAT(test::error_of([&] { coordinator.schedule("double", number("x")).fetch(); }),
               Contains("[worker 0, closure"));
    CHECK_THAT(test::error_of([&] { coordinator.join(); }), Contains("double"));
    CHECK_THROWS_AS(coordinator.schedule("treble"), ConfigError);
    CHECK_THROWS_AS(coordinator.create_per_worker_dataset("none"), ConfigError);
    const at::Tensor large = at::zeros({max_message_bytes / 4 + 1});
    CHECK_THROWS_AS(coordinator.schedule("double", {.json = 1, .tensors = {large}}), ConfigError);
  });
  CHECK(test::end_of(chief) == "");
  CHECK(test::ends_of(tasks) == "");
}

TEST_CASE("the guide's model is trained by two workers and two parameter servers") {
  const JobTasks job(2, 2);
  const JobTasks::Program set_up = [](ParameterServerStrategy& strategy) {
    GuideTask task(strategy);
    strategy.join();
  };
  std::vector<std::future<std::string>> tasks;
  for (int i = 0; i < 2; ++i) {
    tasks.push_back(job.start(TaskType::worker, i, set_up));
    tasks.push_back(job.start(TaskType::ps, i, set_up));
  }
  auto chief = job.start(TaskType::chief, 0, [](ParameterServerStrategy& strategy) {
    GuideTask task(strategy);
    ClusterCoordinator coordinator(strategy);
    const PerWorkerDataset data = coordinator.create_per_worker_dataset("train");
    std::vector<RemoteValue> values{coordinator.schedule("step", {}, {data})};
    // Alone: another step's update may arrive before the first step reads the weights.
    coordinator.join();
    for (int i = 1; i < 300; ++i) values.push_back(coordinator.schedule("step", {}, {data}));
    coordinator.join();
    CHECK(values.front().fetch().json.get<double>() == Approx(0.902).margin(0.01));
    CHECK(values.back().fetch().json.get<double>() < 0.3);
    const auto counts = coordinator.counts();
    CHECK(counts.done == 300);
    // Kernel and bias are on one server each.
    CHECK(counts.updates == std::vector<int64_t>{300, 300});
    coordinator.pull();
    CHECK(task.model.weights()[0].value().full().item<double>() > 0.3);
    CHECK(task.optimizer->steps() == 300);
  });
  CHECK(test::end_of(chief) == "");
  CHECK(test::ends_of(tasks) == "");
}

TEST_CASE("assignments by closures accumulate exactly") {
  const JobTasks job(2, 1);
  struct Task {
    explicit Task(ParameterServerStrategy& strategy) {
      counter =
          Variable("counter",
                   pack(at::zeros({2}, at::kLong), Layout::replicated(strategy.mesh(), 1)), false);
      strategy.place({counter}, {});
      strategy.add_function("count", [this](WorkerContext& worker) -> ClosureValue {
        const DTensor one = pack(at::ones({2}, at::kLong), counter.layout());
        counter.assign_add(one);
        if (worker.closure() % 2 == 0) return {};
        // Two pushes by one closure.
        worker.pull();
        counter.assign_add(one);
        return {};
      });
      strategy.add_function("read", [this](WorkerContext&) -> ClosureValue {
        return {.tensors = {counter.value().full()}};
      });
      strategy.add_function("assign and throw", [this](WorkerContext&) -> ClosureValue {
        counter.assign(pack(at::full({2}, 1000, at::kLong), counter.layout()));
        throw StateError("on purpose");
      });
    }
    Variable counter;
  };
  const JobTasks::Program set_up = [](ParameterServerStrategy& strategy) {
    Task task(strategy);
    strategy.join();
  };
  std::vector<std::future<std::string>> tasks;
  tasks.push_back(job.start(TaskType::worker, 0, set_up));
  tasks.push_back(job.start(TaskType::worker, 1, set_up));
  tasks.push_back(job.start(TaskType::ps, 0, set_up));
  auto chief = job.start(TaskType::chief, 0, [](ParameterServerStrategy& strategy) {
    Task task(strategy);
    ClusterCoordinator coordinator(strategy);
    coordinator.schedule("assign and throw");
    CHECK_THAT(test::error_of([&] { coordinator.join(); }), Contains("on purpose"));
    for (int i = 0; i < 200; ++i) coordinator.schedule("count");
    coordinator.join();
    coordinator.pull();
    CHECK(at::equal(task.counter.value().full(), at::full({2}, 300, at::kLong)));
    for (int i = 0; i < 4; ++i) {
      CHECK(at::equal(coordinator.schedule("read").fetch().tensors.at(0),
                      at::full({2}, 300, at::kLong)));
    }
  });
  CHECK(test::end_of(chief) == "");
  CHECK(test::ends_of(tasks) == "");
}

TEST_CASE("every worker reads its own data, from the start for each iteration") {
  const JobTasks job(2, 1);
  const JobTasks::Program set_up = [](ParameterServerStrategy& strategy) {
    const auto rows = [](const InputContext& context) {
      CHECK(context.num_input_pipelines == 2);
      return DatasetHandle(at::arange(5).to(at::kFloat).reshape({5, 1}) +
                           10 * context.input_pipeline_id);
    };
    strategy.add_dataset("once", rows, {.batch_size = 2, .shuffle = false, .repeat = false});
    strategy.add_dataset("mixed", rows, {.batch_size = 5});
    strategy.add_function("next", [](WorkerContext& worker) -> ClosureValue {
      const auto batch = worker.next();
      Json of = {{"worker", worker.worker()}};
      if (!batch) return {.json = of};
      return {.json = of, .tensors = {batch->x[0].full()}};
    });
  };
  auto tasks = job.start_all(set_up);
  auto chief = job.start(TaskType::chief, 0, [&](ParameterServerStrategy& strategy) {
    set_up(strategy);
    ClusterCoordinator coordinator(strategy);
    for (int pass = 0; pass < 2; ++pass) {
      const PerWorkerDataset data = coordinator.create_per_worker_dataset("once");
      std::vector<std::vector<at::Tensor>> read(2);
      for (int i = 0; i < 12; ++i) {
        const ClosureValue value = coordinator.schedule("next", {}, {data}).fetch();
        const auto worker = value.json.at("worker").get<size_t>();
        if (value.tensors.empty()) {
          CHECK(read[worker].size() == 3);
        } else {
          read[worker].push_back(value.tensors[0]);
        }
      }
      for (size_t w = 0; w < 2; ++w) {
        if (read[w].size() < 3) continue;
        const at::Tensor expected = at::arange(5).to(at::kFloat).reshape({5, 1}) + 10. * double(w);
        CHECK(at::equal(at::cat(read[w]), expected));
      }
    }
    const PerWorkerDataset first = coordinator.create_per_worker_dataset("mixed");
    const at::Tensor batch = coordinator.schedule("next", {}, {first}).fetch().tensors.at(0);
    CHECK(std::get<0>(at::sort(batch.flatten()))[4].item<float>() - batch.min().item<float>() == 4);
    CHECK_FALSE(at::equal(coordinator.schedule("next", {}, {first}).fetch().tensors.at(0), batch));
    CHECK_THAT(test::error_of([&] { coordinator.schedule("next").fetch(); }),
               Contains("index is that of a dataset"));
    CHECK(test::error_of([&] { coordinator.join(); }) != "");
  });
  CHECK(test::end_of(chief) == "");
  CHECK(test::ends_of(tasks) == "");
}

}  // namespace coordinator_test
