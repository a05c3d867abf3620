#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/keras_graphs.hpp"

namespace operations_json_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

using T = SymbolicTensor;

const Json& cases(const std::string& part) { return golden_part("keras_operations.json", part); }

}  // namespace

TEST_CASE("operations, names, arrays and dicts in Keras' JSON are read") {
  CHECK(cases("read").size() == 27);
  for (const Json& golden : cases("read")) {
    CAPTURE(golden.at("model").at("config").at("name").dump());
    const ModelHandle model = read_model(golden);
    check_outputs(model, golden);
    const ModelHandle again = model_from_json(model.to_json());
    CHECK(again.to_json() == model.to_json());
    check_outputs(again, golden);
  }
}

TEST_CASE("unsupported operations are refused by name") {
  const auto refusal = [](size_t i) { return [i] { read_model(cases("refused")[i]); }; };
  CHECK_THROWS_WITH(refusal(0)(),
                    Contains("layers[1]] the operation must be one that Tessera has. Received: "
                             "\"Sort\" of keras.src.ops.numpy, named \"sort\""));
  CHECK_THROWS_WITH(refusal(1)(), Contains("Pad pad: mode] the value must be \"constant\". "
                                           "Received: \"reflect\"") &&
                                      Contains("layers[1].inbound_nodes[0]"));
  CHECK_THROWS_WITH(refusal(2)(), Contains("other arguments of \"once\", Add"));
}

TEST_CASE("a model with operations trains as in Keras, in eager and replayed steps") {
  const Json& golden = cases("trained")[0];
  const at::Tensor x = input_tensor(golden.at("x"));
  const at::Tensor y = input_tensor(golden.at("y"));
  for (const std::vector<int64_t>& sizes : checked_meshes) {
    for (const bool eager : {true, false}) {
      CAPTURE(sizes, eager);
      const ModelHandle model = read_model(golden);
      model.compile({.optimizer = SGD(0.2),
                     .loss = "sparse_categorical_crossentropy",
                     .run_eagerly = eager,
                     .layouts = LayoutMap(mesh_of(sizes))});
      model.set_weights(input_tensors(golden.at("weights")));
      for (const Json& loss : golden.at("losses")) {
        const TensorDataset data(x, y);
        const Logs logs = model.evaluate(data, {.batch_size = 8, .verbose = 0});
        CHECK(logs[0].second == Approx(loss.get<double>()).epsilon(1e-5));
        model.fit(data, {.batch_size = 8, .verbose = 0});
      }
      CHECK((model.step_records().replayed > 0) == !eager);
      const std::vector<at::Tensor> weights = model.get_weights();
      for (size_t i = 0; i < weights.size(); ++i) {
        CHECK(unlike(weights[i], golden.at("trained")[i]) == "");
      }
    }
  }
}

TEST_CASE("inputs and outputs with keys are sorted by key") {
  const Input a({2}, {.name = "a"}), b({3}, {.name = "b"});
  const T first = Dense(2, {.name = "first"})(b), second = Dense(3, {.name = "second"})(a);
  const Functional model({{"b", b}, {"a", a}}, {{"q", first}, {"p", second}});
  CHECK(model->input_shapes() == Shapes{{-1, 2}, {-1, 3}});
  CHECK(model->output_names() == std::vector<std::string>{"p", "q"});
  const Json config = parse_json(model.to_json(), "model").at("config");
  CHECK(config.at("input_layers").dump() == R"({"a":["a",0,0],"b":["b",0,0]})");
  CHECK(config.at("output_layers").dump() == R"({"p":["second",0,0],"q":["first",0,0]})");
  CHECK_THROWS_WITH(Functional({{"a", a}, {"a", b}}, {second}), Contains("a key twice"));
}

}  // namespace operations_json_test
