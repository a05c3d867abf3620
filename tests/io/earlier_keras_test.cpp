// Tests of files that earlier versions of Keras wrote, made here by code.
#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/keras_file.hpp"
#include "tests/support/virtual_meshes.hpp"
#include "tests/support/warnings.hpp"

namespace earlier_keras_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

/// Returns distinct numbers between -1 and 1.
at::Tensor numbers(const Shape& shape, int64_t seed = 37) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  const at::Tensor list = at::arange(count, at::kLong) * seed;
  return (list.remainder(101).to(at::kDouble) / 50 - 1).to(at::kFloat).reshape(shape);
}

/// Kernels and biases of "dense" (4, 5), "dense_1" (5, 3) and "dense_2" (3, 2).
std::vector<at::Tensor> dense_weights() {
  return {numbers({4, 5}), numbers({5}, 13),   numbers({5, 3}, 7),
          numbers({3}),    numbers({3, 2}, 5), numbers({2}, 3)};
}

at::Tensor expected_output(const at::Tensor& x) {
  const std::vector<at::Tensor> w = dense_weights();
  const at::Tensor hidden = (x.matmul(w[0]) + w[1]).relu();
  return (hidden.matmul(w[2]) + w[3]).relu().matmul(w[4]) + w[5];
}

Json dense_layer(const std::string& name, const Json& units, const std::string& activation) {
  return {{"class_name", "Dense"},
          {"config",
           {{"name", name},
            {"trainable", true},
            {"dtype", "float32"},
            {"units", units},
            {"activation", activation},
            {"use_bias", 1}}}};
}

Json dense_model() {
  Json first = dense_layer("dense", 5.0, "relu");
  first["config"]["batch_input_shape"] = {nullptr, 4};
  return {{"class_name", "Sequential"},
          {"config",
           {{"name", "sequential"},
            {"layers", Json::array({first, dense_layer("dense_1", 3, "relu"),
                                    dense_layer("dense_2", 2, "linear")})}}}};
}

/// Returns the weights of the three layers by Keras 2's names.
std::vector<std::pair<std::string, NamedData>> dense_layers() {
  const std::vector<at::Tensor> w = dense_weights();
  std::vector<std::pair<std::string, NamedData>> layers;
  for (size_t i = 0; i < 3; ++i) {
    const std::string name = i == 0 ? "dense" : str("dense_", i);
    layers.push_back({name, {{name + "/kernel:0", w[2 * i]}, {name + "/bias:0", w[2 * i + 1]}}});
  }
  return layers;
}

/// Groups of an archive of the three layers below this list, with this separator.
std::vector<std::pair<std::string, std::vector<at::Tensor>>> dense_groups(
    const std::string& list = "layers", const std::string& separator = "/", int64_t step = 1) {
  const std::vector<at::Tensor> w = dense_weights();
  std::vector<std::pair<std::string, std::vector<at::Tensor>>> groups;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t number = static_cast<int64_t>(i) * step;
    const std::string name = number == 0 ? "dense" : str("dense_", number);
    groups.push_back({list + separator + name, {w[2 * i], w[2 * i + 1]}});
  }
  return groups;
}

Json adam(const Json& more = Json::object()) {
  Json config = {{"name", "Adam"}, {"learning_rate", 0.25}, {"beta_1", 0.9}, {"beta_2", 0.999}};
  config.update(more);
  return {{"class_name", "Adam"}, {"config", config}};
}

at::Tensor output_of(const ModelHandle& model, const at::Tensor& x, const Mesh& mesh) {
  return model->outputs({pack(x, Layout({"x", unsharded}, mesh))})[0].full();
}

/// Checks that a file's model computes what its weights say, on every mesh.
void check_model(const std::string& path) {
  const at::Tensor x = numbers({6, 4}, 11);
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{1}, {2}, {3}}) {
    CAPTURE(path, sizes);
    const Mesh mesh = virtual_mesh(sizes);
    const ModelHandle model = load_model(path, {.layouts = LayoutMap(mesh)});
    CHECK(difference(output_of(model, x, mesh), expected_output(x), 0, 1e-6) == "");
  }
}

/// Returns the value of an optimizer's variable.
at::Tensor slot_of(const ModelHandle& model, const std::string& path) {
  for (const Variable& variable : model->optimizer()->variables()) {
    if (variable.path() == path) return variable.value().full();
  }
  FAIL("no " + path);
  return {};
}

}  // namespace

TEST_CASE("the first bytes of a model's file decide how it is read, not its name") {
  const TempFolder folder;
  for (const char* name : {"model.h5", "model.keras", "model.hdf5", "model"}) {
    write_legacy_file(folder / name, {.layers = dense_layers(), .config = dense_model()});
    check_model(folder / name);
  }
  write_archive(folder / "archive.h5", "2.15.0", dense_model(), dense_groups());
  check_model(folder / "archive.h5");
  write_file(folder / "neither.keras", "neither of the two");
  CHECK_THROWS_AS(load_model(folder / "neither.keras"), FileError);
}

TEST_CASE("weights are read from files of any name, and from models") {
  const TempFolder folder;
  write_legacy_file(folder / "best_weight.h5", {.layers = dense_layers()});
  write_legacy_file(folder / "best", {.layers = dense_layers()});
  write_legacy_file(folder / "model.keras", {.layers = dense_layers(), .config = dense_model()});
  write_archive(folder / "archive.keras", "2.15.0", dense_model(), dense_groups());
  const at::Tensor x = numbers({6, 4}, 11);
  const Mesh mesh = virtual_mesh({2});
  for (const char* name : {"best_weight.h5", "best", "model.keras", "archive.keras"}) {
    CAPTURE(name);
    const ModelHandle model = model_from_config(dense_model(), "m");
    model->place_weights(LayoutMap(mesh));
    model.load_weights(folder / name);
    CHECK(difference(output_of(model, x, mesh), expected_output(x), 0, 1e-6) == "");
  }
}

TEST_CASE("models of Keras 1 are read") {
  const TempFolder folder;
  const std::vector<at::Tensor> w = dense_weights();
  const std::vector<std::string> activations = {"relu", "relu", "linear"};
  Json layers = Json::array();
  std::vector<std::pair<std::string, NamedData>> data;
  for (size_t i = 0; i < 3; ++i) {
    const std::string name = str("dense_", i + 1);
    layers.push_back({{"class_name", "Dense"},
                      {"config",
                       {{"name", name},
                        {"trainable", true},
                        {"output_dim", w[2 * i].size(1)},
                        {"input_dim", nullptr},
                        {"init", "glorot_uniform"},
                        {"activation", activations[i]},
                        {"W_regularizer", nullptr},
                        {"b_constraint", nullptr},
                        {"bias", true}}}});
    data.push_back({name, {{name + "_W", w[2 * i]}, {name + "_b", w[2 * i + 1]}}});
  }
  layers[0]["config"]["batch_input_shape"] = {nullptr, 4};
  layers[0]["config"]["input_dtype"] = "float32";
  write_legacy_file(folder / "m.h5",
                    {.version = "1.2.1",
                     .layers = data,
                     .config = {{"class_name", "Sequential"}, {"config", layers}}});
  check_model(folder / "m.h5");
}

TEST_CASE("archives of Keras 2 on Windows are read") {
  const TempFolder folder;
  write_archive(folder / "m.keras", "2.14.0", dense_model(), dense_groups("layers", "\\"));
  check_model(folder / "m.keras");
  Json rnn = {{"class_name", "LSTM"}, {"config", {{"name", "r"}, {"units", 2}}}};
  rnn["config"]["batch_input_shape"] = {nullptr, 5, 3};
  const Json model = {{"class_name", "Sequential"},
                      {"config", {{"name", "s"}, {"layers", Json::array({rnn})}}}};
  write_archive(folder / "rnn.keras", "2.14.0", model,
                {{"layers\\lstm\\cell", {numbers({3, 8}), numbers({2, 8}), numbers({8})}}});
  CHECK(load_model(folder / "rnn.keras")->weights()[0].value().full().equal(numbers({3, 8})));
}

TEST_CASE("archives of Keras 2.13 are read, with layers counted once or twice") {
  const TempFolder folder;
  for (const char* separator : {"/", "\\"}) {
    for (const int64_t step : {1, 2}) {
      CAPTURE(separator, step);
      write_archive(folder / "m.keras", "2.13.1", dense_model(),
                    dense_groups("_layer_checkpoint_dependencies", separator, step));
      check_model(folder / "m.keras");
    }
  }
  // Elsewhere a gap in the numbers is an error.
  write_archive(folder / "m.keras", "2.15.0", dense_model(), dense_groups("layers", "/", 2));
  CHECK_THROWS_WITH(load_model(folder / "m.keras"), Contains("\"layers/dense_1\" holds the 2"));
}

TEST_CASE("archives of Keras 2 are compiled as they were") {
  const TempFolder folder;
  Json config = dense_model();
  config["compile_config"] = {
      {"optimizer", adam({{"jit_compile", false}, {"is_legacy_optimizer", false}})},
      {"loss",
       {{"class_name", "MeanSquaredError"},
        {"config", {{"reduction", "auto"}, {"name", "mean_squared_error"}, {"fn", "mse"}}}}},
      {"metrics", {"mae"}},
      {"loss_weights", nullptr},
      {"weighted_metrics", nullptr},
      {"run_eagerly", nullptr},
      {"steps_per_execution", nullptr},
      {"jit_compile", nullptr}};
  auto groups = dense_groups();
  groups.push_back({"optimizer", {at::scalar_tensor(7, at::kLong), at::scalar_tensor(0.5F)}});
  for (const at::Tensor& weight : dense_weights()) {
    groups.back().second.push_back(at::full_like(weight, 0.125));
    groups.back().second.push_back(at::full_like(weight, 0.25));
  }
  write_archive(folder / "m.keras", "2.15.0", config, groups);
  check_model(folder / "m.keras");
  const Warnings warnings;
  const ModelHandle model = load_model(folder / "m.keras");
  CHECK(warnings.text() == "");
  CHECK(model->optimizer()->steps() == 7);
  CHECK(model->optimizer()->learning_rate() == 0.5);
  CHECK(slot_of(model, "Adam/dense_1/bias/velocity").equal(at::full({3}, 0.25)));
  CHECK(load_model(folder / "m.keras", {.compile = false})->compiled() == false);
}

TEST_CASE("an unknown loss, metric or optimizer does not keep a model from being read") {
  const TempFolder folder;
  const Json unknown = {{"module", "builtins"},
                        {"class_name", "function"},
                        {"config", "my_own"},
                        {"registered_name", "function"}};
  const Json parts = {
      {"loss", unknown},
      {"metrics", Json::array({Json{{"class_name", "MyOwn"}, {"config", Json::object()}}})},
      {"optimizer", {{"class_name", "MyOwn"}, {"config", Json::object()}}}};
  for (const auto& [key, value] : parts.items()) {
    CAPTURE(key);
    Json config = dense_model();
    config["compile_config"] = {{"optimizer", adam()}, {"loss", "mse"}};
    config["compile_config"][key] = value;
    write_archive(folder / "m.keras", "3.8.0", config, dense_groups());
    CHECK_THROWS_WITH(
        load_model(folder / "m.keras"),
        Contains("compile_config: " + key) &&
            Contains(", or load the model without compiling it: {.compile = false}."));
    const at::Tensor x = numbers({6, 4}, 11);
    const Mesh mesh = virtual_mesh({2});
    const ModelHandle model =
        load_model(folder / "m.keras", {.layouts = LayoutMap(mesh), .compile = false});
    CHECK(difference(output_of(model, x, mesh), expected_output(x), 0, 1e-6) == "");
  }
}

TEST_CASE("hard_sigmoid of a file of Keras 2 is computed, saved and read as it was") {
  const TempFolder folder;
  Json config = dense_model();
  for (Json& layer : config["config"]["layers"]) layer["config"]["activation"] = "hard_sigmoid";
  write_archive(folder / "m.keras", "2.15.0", config, dense_groups());
  write_legacy_file(folder / "m.h5",
                    {.version = "2.2.4", .layers = dense_layers(), .config = config});
  const at::Tensor x = numbers({6, 4}, 11);
  const auto hard = [](const at::Tensor& v) { return (0.2 * v + 0.5).clamp(0, 1); };
  const std::vector<at::Tensor> w = dense_weights();
  at::Tensor expected = x;
  for (size_t i = 0; i < 3; ++i) expected = hard(expected.matmul(w[2 * i]) + w[2 * i + 1]);
  for (const char* name : {"m.keras", "m.h5"}) {
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{1}, {2}, {3}}) {
      CAPTURE(name, sizes);
      const Mesh mesh = virtual_mesh(sizes);
      const ModelHandle model = load_model(folder / name, {.layouts = LayoutMap(mesh)});
      CHECK(difference(output_of(model, x, mesh), expected, 0, 1e-6) == "");
      const Warnings warnings;
      model.save(folder / "again.keras");
      CHECK_THAT(warnings.text(), Contains("Keras 3 needs hard_sigmoid of Keras 2"));
      const ModelHandle again = load_model(folder / "again.keras", {.layouts = LayoutMap(mesh)});
      CHECK(difference(output_of(again, x, mesh), expected, 0, 1e-6) == "");
    }
  }
}

TEST_CASE("slots of optimizers of Keras up to 2.10 are read by name or in their order") {
  const TempFolder folder;
  const std::vector<at::Tensor> w = dense_weights();
  const std::vector<std::string> names = {"dense/kernel", "dense/bias",     "dense_1/kernel",
                                          "dense_1/bias", "dense_2/kernel", "dense_2/bias"};
  const auto check = [&](const NamedData& optimizer, const Json& config) {
    write_legacy_file(folder / "m.h5", {.layers = dense_layers(),
                                        .config = dense_model(),
                                        .training = {{"loss", "mse"}, {"optimizer_config", config}},
                                        .optimizer = optimizer});
    const Warnings warnings;
    const ModelHandle model = load_model(folder / "m.h5");
    CHECK(warnings.text() == "");
    return model;
  };
  const auto slots = [&](const std::string& slot, double first) {
    NamedData list;
    for (size_t i = 0; i < w.size(); ++i) {
      list.emplace_back("Adam/" + names[i] + "/" + slot + ":0",
                        at::full_like(w[i], first + static_cast<double>(i)));
    }
    return list;
  };
  const auto joined = [](std::vector<NamedData> lists) {
    NamedData all;
    for (NamedData& list : lists) all.insert(all.end(), list.begin(), list.end());
    return all;
  };
  const NamedData step = {{"Adam/iter:0", at::scalar_tensor(7, at::kLong)}};
  const NamedData vhat = [] {
    NamedData list;
    for (size_t i = 0; i < 6; ++i) {
      list.emplace_back(str("training/Adam/Variable_", i + 12, ":0"), at::zeros({1}));
    }
    return list;
  }();
  NamedData numbered = joined({slots("m", 10), slots("v", 20)});
  for (size_t i = 0; i < numbered.size(); ++i) {
    numbered[i].first =
        i == 0 ? "training/Adam/Variable:0" : str("training/Adam/Variable_", i, ":0");
  }
  for (const NamedData& optimizer :
       {joined({step, slots("m", 10), slots("v", 20)}),
        joined({step, slots("m", 10), slots("v", 20), slots("vhat", 30)}), joined({step, numbered}),
        joined({step, numbered, vhat})}) {
    for (const Json& config : {adam(), adam({{"decay", 0.25}})}) {
      const ModelHandle model = check(optimizer, config);
      CHECK(model->optimizer()->steps() == 7);
      CHECK(slot_of(model, "Adam/dense/kernel/momentum").equal(at::full({4, 5}, 10.F)));
      CHECK(slot_of(model, "Adam/dense_2/bias/momentum").equal(at::full({2}, 15.F)));
      CHECK(slot_of(model, "Adam/dense_1/bias/velocity").equal(at::full({3}, 23.F)));
    }
  }
  const ModelHandle rms =
      check(joined({slots("rms", 40), slots("momentum", 50)}),
            {{"class_name", "RMSprop"}, {"config", {{"name", "RMSprop"}, {"momentum", 0.5}}}});
  CHECK(slot_of(rms, "RMSprop/dense_1/kernel/velocity").equal(at::full({5, 3}, 42.F)));
  CHECK(slot_of(rms, "RMSprop/dense_1/kernel/momentum").equal(at::full({5, 3}, 52.F)));
  const ModelHandle begun = check(step, adam());
  CHECK(begun->optimizer()->steps() == 7);

  write_legacy_file(folder / "m.h5", {.layers = dense_layers(),
                                      .config = dense_model(),
                                      .training = {{"loss", "mse"}, {"optimizer_config", adam()}},
                                      .optimizer = joined({step, slots("m", 10)})});
  const Warnings warnings;
  load_model(folder / "m.h5");
  CHECK_THAT(warnings.text(), Contains("keep their initial values: the file's slots do not fit"));
}

}  // namespace earlier_keras_test
