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
