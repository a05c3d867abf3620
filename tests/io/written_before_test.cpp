// Tests that files of release 0.1.0 can be read: a checkpoint of mnist, an export of imdb, and the
// configuration of a model with many layers.
#include <span>

#include <ATen/ATen.h>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/io/format/checkpoint_reader.hpp>
#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/seed_scope.hpp"

namespace written_before_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("a checkpoint of 0.1.0 is restored with weights and optimizer") {
  const std::string folder = test::golden_path("written_0_1_0/checkpoint");
  Sequential model({Input({784}), Flatten(), Dense(6, {.name = "hidden_1"}),
                    Dense(4, {.name = "hidden_2"}), Dense(10, {.name = "logits"})});
  model.compile({.optimizer = Adam(1e-3, {.epsilon_on_corrected_root = true}),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .mesh = create_mesh({{"batch", 2}}, virtual_cpus(2))});
  const test::SeedScope old_seed;
  Checkpoint(model).restore(folder);
  CHECK(global_seed() == 1337);
  CHECK(model->optimizer()->steps() == 4);
  const CheckpointReader reader(folder);
  const auto same = [&](const std::string& name, const Variable& variable) {
    at::Tensor stored = at::empty(variable.shape());
    std::vector<int64_t> begin(variable.shape().size());
    reader.read(name, begin, variable.shape(),
                std::as_writable_bytes(std::span(stored.data_ptr<float>(), stored.numel())));
    return at::equal(stored, variable.value().full());
  };
  const std::vector<Variable> weights = model.weights();
  REQUIRE(weights.size() == 6);
  for (const Variable& weight : weights) {
    INFO(weight.path());
    CHECK(same(weight.path(), weight));
    const std::vector<Variable> slots = model->optimizer()->variables_of(weight);
    CHECK(same("optimizer/" + weight.path() + "/momentum", slots[0]));
    CHECK(same("optimizer/" + weight.path() + "/velocity", slots[1]));
  }
}

TEST_CASE("an export of 0.1.0 loads, verifies its sample, and answers") {
  const ExportedModel loaded = load_export(test::golden_path("written_0_1_0/export"));
  const at::Tensor answers = loaded.predict({"a moving film", "the worst of all"});
  CHECK(answers.sizes() == at::IntArrayRef({2, 2}));
  CHECK(at::allclose(answers.sum(-1), at::ones({2})));
}

TEST_CASE("a model's configuration of 0.1.0 is rewritten byte for byte but for wrapped modules") {
  const std::string text = read_file(test::golden_path("written_0_1_0/model.json"));
  Json json = parse_json(model_from_json(text).to_json(), "model");
  int wrapped = 0;
  for (Json& layer : json["config"]["layers"]) {
    for (const char* key : {"layer", "backward_layer"}) {
      if (!layer["config"].contains(key)) continue;
      ++wrapped;
      CHECK(layer["config"][key].erase("module") == 1);
      CHECK(layer["config"][key].erase("registered_name") == 1);
    }
  }
  CHECK(wrapped == 3);
  CHECK(to_json_text(json, 2) + "\n" == text);
}

}  // namespace written_before_test
