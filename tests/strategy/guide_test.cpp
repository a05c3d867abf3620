#include "tests/strategy/guide_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thread_communicator.hpp"

namespace guide_test {

using namespace tessera;
using namespace tessera::test;
using namespace tessera::strategy;

namespace {

void check_guide(const Strategy& strategy) {
  INFO(strategy.name() << " on " << strategy.num_replicas_in_sync());
  CHECK(differs_from_guide(loop_losses(strategy, 210)) == "");
  CHECK(differs_from_guide(fit_losses(strategy, 210)) == "");
}

/// Returns what Keras' progress bar shows: the mean of the mean losses after each batch so far, to
/// which the end of an epoch adds the last one again.
double shown(const std::vector<double>& means, size_t batches, bool ended) {
  double sum = ended ? means[batches - 1] : 0;
  for (size_t i = 0; i < batches; ++i) sum += means[i];
  return sum / static_cast<double>(batches + (ended ? 1 : 0));
}

/// The means of the loss after each batch of an epoch, by epoch.
using Means = std::vector<std::vector<double>>;

/// Returns a callback that notes the mean loss after each batch of a fit.
LambdaCallback noting(Means& means) {
  return LambdaCallback({.on_train_batch_end = [&means](int64_t batch, const Logs& logs) {
    if (batch == 0) means.emplace_back();
    means.back().push_back(*find_value(logs, "loss"));
  }});
}

/// Checks the losses that the guide prints for fit, evaluate and the fit of arrays, which begin
/// with a random kernel. A kernel of 0.1943 gives the first of them; the others follow.
void check_fit_of_guide(const Strategy& strategy) {
  INFO(strategy.name() << " on " << strategy.num_replicas_in_sync());
  const Sequential model = strategy.run([] {
    Sequential made({Input({1}), Dense(1, {.kernel_initializer = Constant(0.1943),
                                           .kernel_regularizer = L2(1e-4)})});
    made.compile({.optimizer = "sgd", .loss = "mse"});
    return made;
  });
  const auto printed = [](double loss) { return Approx(loss).margin(5.1e-5).epsilon(0); };
  const at::Tensor ones = at::ones({100, 1});
  const TensorDataset dataset({.x = {ones}, .y = {ones}});
  Means first, second;
  model.fit(dataset, {.batch_size = 10, .epochs = 2, .verbose = 0, .callbacks = {noting(first)}});
  REQUIRE(first.size() == 2);
  CHECK(shown(first[0], 1, false) == printed(0.6492));
  CHECK(shown(first[0], 10, true) == printed(0.5412));
  CHECK(shown(first[1], 1, false) == printed(0.2869));
  CHECK(shown(first[1], 10, true) == printed(0.2392));
  const Logs evaluated = model.evaluate(dataset, {.batch_size = 10, .verbose = 0});
  CHECK(*find_value(evaluated, "loss") == printed(0.1268));
  model.fit(ones, ones,
            {.batch_size = 10, .epochs = 2, .verbose = 0, .callbacks = {noting(second)}});
  REQUIRE(second.size() == 2);
  CHECK(shown(second[0], 2, false) == printed(0.1244));
  CHECK(shown(second[0], 10, true) == printed(0.1058));
  CHECK(shown(second[1], 3, false) == printed(0.0539));
  CHECK(shown(second[1], 10, true) == printed(0.0468));
}

}  // namespace

TEST_CASE("the guide's 210 losses, by custom loop and by fit") {
  check_guide(default_strategy());
  check_guide(OneDeviceStrategy("/cpu:0"));
  check_guide(MirroredStrategy({.devices = {"cpu:0", "cpu:1"}}));
  check_guide(MirroredStrategy(
      {.devices = {"/cpu:0", "/cpu:1"}, .cross_device_ops = HierarchicalCopyAllReduce()}));
  check_guide(MultiWorkerMirroredStrategy({.devices_per_worker = 2}));
  check_guide(CentralStorageStrategy({.compute_devices = {"cpu:0", "cpu:1"}}));
}

TEST_CASE("the guide's fit with a kernel like the drawn one gives the losses that it prints") {
  check_fit_of_guide(default_strategy());
  check_fit_of_guide(MirroredStrategy({.devices = {"cpu:0", "cpu:1"}}));
  check_fit_of_guide(CentralStorageStrategy({.compute_devices = {"cpu:0", "cpu:1"}}));
}

TEST_CASE("the guide's 210 losses when replicas hold 3, 2 or no rows of a short batch") {
  CHECK(differs_from_guide(loop_losses(MeshStrategy(create_mesh({{"batch", 3}})), 210)) == "");
  CHECK(differs_from_guide(fit_losses(MeshStrategy(create_mesh({{"batch", 12}})), 210)) == "");
}

TEST_CASE("the guide's 210 losses on two processes") {
  CHECK_NOTHROW(run_ranks(2, [](int, const auto& communicator) {
    const MeshStrategy strategy(rank_mesh({{"batch", 2}}, communicator));
    const std::string loop = differs_from_guide(loop_losses(strategy, 210));
    expect(loop.empty(), "loop, " + loop);
    const std::string fit = differs_from_guide(fit_losses(strategy, 210));
    expect(fit.empty(), "fit, " + fit);
  }));
}

}  // namespace guide_test
