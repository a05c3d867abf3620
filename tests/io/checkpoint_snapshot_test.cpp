#include <tessera/framework/io/internal/checkpoint_snapshot.hpp>

#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/thread_communicator.hpp"

namespace checkpoint_snapshot_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("saves into folders of the same name do not mix, whichever is written first") {
  const test::TempFolder folder;
  const auto run = [&](int rank, const std::shared_ptr<Communicator>& communicator) {
    const Mesh mesh = test::rank_mesh({{"x", 2}}, communicator);
    const Layout layout({"x", unsharded}, mesh);
    Variable w("w", filled({8, 1000}, 1, at::kFloat, layout));
    Checkpoint checkpoint({w});
    const CheckpointSnapshot one({.variables = {w}}, nullptr);
    w.assign(filled(w.shape(), 2, at::kFloat, layout));
    const CheckpointSnapshot two({.variables = {w}}, nullptr);
    const auto write = [&](const CheckpointSnapshot& snapshot, const std::string& name) {
      return std::async(std::launch::async, [&snapshot, path = folder / name] {
        const c10::InferenceMode inference;
        snapshot.write(path);
      });
    };
    auto first = rank == 0 ? write(one, "a/last") : write(two, "b/last");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    auto second = rank == 0 ? write(two, "b/last") : write(one, "a/last");
    first.get();
    second.get();
    for (const auto& [name, sum] : {std::pair{"a/last", 8000.0}, std::pair{"b/last", 16000.0}}) {
      checkpoint.restore(folder / name);
      test::expect(w.value().full().sum().item<double>() == sum, "another state was saved");
    }
  };
  CHECK_NOTHROW(test::run_ranks(2, run));
}

}  // namespace checkpoint_snapshot_test
