#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/io/keras/keras_store.hpp>
#include <tessera/framework/io/keras/keras_values.hpp>
#include <tessera/framework/io/keras/keras_weights.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/thread_communicator.hpp"

namespace keras_bytes_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

constexpr int ranks = 4;

ModelHandle model_of_64_megabytes() {
  return Sequential({Input({1024}), Dense(4096, {.name = "a"}),
                     Dense(2048, {.use_bias = false, .name = "b"}), Dense(2048, {.name = "c"})});
}

/// Returns a model whose kernels are sharded over all ranks, along rows and along columns.
ModelHandle sharded_model(const std::shared_ptr<Communicator>& communicator) {
  const ModelHandle model = model_of_64_megabytes();
  LayoutMap layouts(test::rank_mesh({{"model", ranks}}, communicator));
  layouts["b/kernel"] = {unsharded, "model"};
  layouts["[ac]/kernel"] = {"model", unsharded};
  layouts[".*/bias"] = {"model"};
  model->place_weights(layouts);
  return model;
}

uint64_t shard_bytes(const ModelHandle& model) {
  uint64_t bytes = 0;
  for (const Variable& weight : model->weights()) bytes += weight.value().local(0).nbytes();
  return bytes;
}

}  // namespace

TEST_CASE("four processes read only their own bytes of a 64 MB file and send none") {
  const test::TempFolder folder;
  const ModelHandle full_model = model_of_64_megabytes();
  full_model.save(folder / "x.keras");
  full_model.save_weights(folder / "x.weights.h5");
  const auto load = [&](int, const std::shared_ptr<Communicator>& communicator) {
    const ModelHandle model = sharded_model(communicator);
    const Mesh mesh = model->weights()[0].layout().mesh();
    const ZipArchive archive(folder / "x.keras");
    KerasStore stores[] = {KerasStore(folder / "x.weights.h5"),
                           KerasStore(archive, *archive.find("model.weights.h5"))};
    for (const KerasStore& store : stores) {
      CommLog log;
      {
        const CommLogScope scope(log);
        load_keras_weights(model.model(), store, {});
      }
      test::expect(store.bytes_read() == shard_bytes(model),
                   str(store.bytes_read(), " bytes of ", store.path()));
      test::expect(log.entries().empty(), log.to_string());
    }
    test::expect(shard_bytes(model) == (uint64_t{1024 * 4096 + 4096 * 2048 + 2048 * 2048} + 6144),
                 str(shard_bytes(model), " bytes are a quarter"));
  };
  CHECK_NOTHROW(test::run_ranks(ranks, load));
}

TEST_CASE("four processes save a 64 MB model and send nothing") {
  const test::TempFolder folder;
  const auto save = [&](int, const std::shared_ptr<Communicator>& communicator) {
    const ModelHandle model = sharded_model(communicator);
    CommLog log;
    {
      const CommLogScope scope(log);
      model.save(folder / "x.keras");
      model.save_weights(folder / "x.weights.h5");
    }
    test::expect(log.entries().empty(), log.to_string());
  };
  CHECK_NOTHROW(test::run_ranks(ranks, save));
  const ModelHandle full_model = model_of_64_megabytes();
  full_model.load_weights(folder / "x.weights.h5");
  const ModelHandle same = load_model(folder / "x.keras");
  for (size_t i = 0; i < full_model->weights().size(); ++i) {
    CHECK(full_model->get_weights()[i].equal(same->get_weights()[i]));
  }
}

}  // namespace keras_bytes_test
