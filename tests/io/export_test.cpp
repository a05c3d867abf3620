#include <tessera/framework/io/export.hpp>

#include <tessera/tessera.hpp>

#include <filesystem>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/comm/dtype_name.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/sample_export.hpp"
#include "tests/support/thread_communicator.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace export_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

const std::vector<std::string> texts{"good good fun", "hate this awful thing", "", "x y z",
                                     "best and worst"};

/// DriftLayer's factor: makes a computation change between export and load.
double drift = 1;

class DriftLayer final : public Layer {
 public:
  using Layer::Layer;
  std::string class_name() const override { return "Drift"; }
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return ops::scale(inputs[0], drift);
  }
};

/// Returns the training model's outputs for the texts.
at::Tensor answers(const ModelHandle& model) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const at::Tensor rows = test::sample_words()->transform(views);
  return at::softmax(model.predict(rows), -1);
}

LayoutMap model_layouts(const Mesh& mesh) {
  LayoutMap layouts(mesh);
  layouts["hidden/kernel"] = {unsharded, "model"};
  layouts["logits/kernel"] = {"model", unsharded};
  return layouts;
}

/// Returns the text of the FileError of loading; "" if it loads.
std::string load_error(const std::string& folder) {
  try {
    load_export(folder);
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

/// Checks that an export with these options throws an error that contains a text.
template <class Thrown>
void check_refused(const ModelHandle& model, const ExportOptions& options,
                   const std::string& says) {
  const test::TempFolder folder;
  CHECK_THROWS_AS(export_model(model, folder / "e", options), Thrown);
  CHECK_THROWS_WITH(export_model(model, folder / "e", options), Contains(says));
  CHECK_FALSE(std::filesystem::exists(folder / "e"));
}

}  // namespace

TEST_CASE("an exported model answers like the training model on every mesh") {
  const Mesh eight = create_mesh({{"batch", 4}, {"model", 2}}, virtual_cpus(8));
  const Sequential model = test::sample_classifier();
  model.compile({.layouts = model_layouts(eight)});
  const at::Tensor expected = answers(model);
  const test::TempFolder folder;
  CHECK(export_model(model, folder / "e", test::sample_export_options()) == 1);

  const ExportedModel alone = load_export(folder / "e");
  CHECK(test::difference(alone.predict(texts), expected, 0, 1e-6) == "");
  CHECK(alone.version == 1);
  CHECK(alone.step == 7);
  CHECK(alone.labels == std::vector<std::string>{"negative", "positive"});
  const Mesh two = create_mesh({{"model", 2}}, virtual_cpus(2));
  const ExportedModel split = load_export(folder / "e", {.layouts = model_layouts(two)});
  CHECK(split.model.weights()[0].layout().describe() ==
        Layout({unsharded, "model"}, two).describe());
  CHECK(test::difference(split.predict(texts), expected, 0, 1e-6) == "");
  const ExportedModel back = load_export(folder / "e", {.layouts = model_layouts(eight)});
  CHECK(test::difference(back.predict(texts), expected, 0, 1e-6) == "");
}

TEST_CASE("an export decides for a label with its probability") {
  const test::TempFolder folder;
  test::export_sample(folder / "e");
  const ExportedModel model = load_export(folder.path() / "e/000001");
  const at::Tensor outputs = model.predict({"love love best", "worst"});
  const auto decided = model.decide(outputs);
  REQUIRE(decided.size() == 2);
  for (int64_t r = 0; r < 2; ++r) {
    const auto best = outputs[r].argmax().item<int64_t>();
    CHECK(decided[size_t(r)].first == model.labels[size_t(best)]);
    CHECK(decided[size_t(r)].second == outputs[r].max().item<float>());
    CHECK(outputs[r].sum().item<float>() == Approx(1));
  }
  CHECK_THROWS_AS(model.predict(at::zeros({1, 12})), ConfigError);
  CHECK_THROWS_AS(model.predict(std::vector<std::string>()), ConfigError);
}

TEST_CASE("a model of tensors with one output can be exported too") {
  const Sequential model({Dense(1, {.name = "score"})});
  model.build({-1, 3});
  const test::TempFolder folder;
  const at::Tensor rows = at::arange(9, at::kFloat).view({3, 3});
  export_model(model, folder / "e",
               {.sample = rows, .labels = {"no", "yes"}, .activation = "sigmoid"});
  const ExportedModel loaded = load_export(folder / "e");
  const at::Tensor expected = at::sigmoid(model.predict(rows));
  CHECK(test::difference(loaded.predict(rows), expected, 0, 1e-6) == "");
  const auto decided = loaded.decide(at::tensor({0.25, 0.75}).view({2, 1}));
  CHECK(decided[0] == std::pair<std::string, double>("no", 0.75));
  CHECK(decided[1] == std::pair<std::string, double>("yes", 0.75));
  CHECK_THROWS_AS(loaded.predict(at::zeros({1, 4})), ShapeError);
  CHECK_THROWS_AS(loaded.predict({"text"}), ConfigError);
}

TEST_CASE("a model with several inputs and outputs can be exported, and answers on every mesh") {
  const Input left({2}, {.name = "left"});
  const Input right({3}, {.dtype = "int64", .name = "right"});
  const SymbolicTensor sum = Concatenate()({left, Rescaling(1, {.name = "as_float"})(right)});
  const Functional model({left, right}, {Dense(4, {.activation = "relu", .name = "wide"})(sum),
                                         Dense(1, {.name = "score"})(left)});
  const at::Tensor a = at::arange(10, at::kFloat).view({5, 2}).sin();
  const at::Tensor b = at::arange(15, at::kLong).view({5, 3});
  const std::vector<at::Tensor> expected = model.predict_all(Examples{.x = {a, b}});
  const test::TempFolder folder;
  export_model(model, folder / "e", {.sample = {{"right", b}, {"left", a}}});
  export_model(model, folder / "e", {.sample = {a, b}});
  for (const Mesh& mesh :
       {create_mesh({{"batch", 1}}, virtual_cpus(1)), create_mesh({{"batch", 2}}, virtual_cpus(2)),
        create_mesh({{"batch", 2}, {"model", 2}}, virtual_cpus(4))}) {
    for (const int64_t version : {1, 2}) {
      CAPTURE(mesh.describe(), version);
      LayoutMap layouts(mesh);
      if (mesh.find("model") >= 0) layouts["wide/kernel"] = {unsharded, "model"};
      const ExportedModel loaded =
          load_export(folder / "e", {.layouts = layouts, .version = version});
      REQUIRE(loaded.inputs.size() == 2);
      CHECK(loaded.inputs[0].name == "left");
      CHECK(loaded.inputs[1].name == "right");
      CHECK(loaded.inputs[1].shape == Shape{-1, 3});
      CHECK(loaded.inputs[1].dtype == at::kLong);
      REQUIRE(loaded.outputs.size() == 2);
      CHECK(loaded.outputs[0].name == "wide");
      CHECK(loaded.outputs[1].name == "score");
      CHECK(loaded.outputs[1].shape == Shape{-1, 1});
      for (const auto& outputs :
           {loaded.predict_all({a, b}), loaded.predict_all({{"right", b}, {"left", a}})}) {
        REQUIRE(outputs.size() == 2);
        CHECK(test::difference(outputs[0], expected[0], 0, 1e-6) == "");
        CHECK(test::difference(outputs[1], expected[1], 0, 1e-6) == "");
      }
      CHECK_THROWS_WITH(loaded.predict({{"left", a}, {"right", b}}), Contains("2 outputs"));
      CHECK_THROWS_WITH(loaded.predict_all({{"left", a}, {"rihgt", b}}),
                        Contains("write \"right\""));
      CHECK_THROWS_WITH(loaded.predict_all({{"left", a}}), Contains("\"right\" without one"));
      CHECK_THROWS_AS(loaded.predict_all({a}), ConfigError);
      CHECK_THROWS_AS(loaded.predict_all({a, b.narrow(0, 0, 4)}), ShapeError);
      CHECK_THROWS_AS(loaded.predict_all({b, a}), ShapeError);
    }
  }
  check_refused<ConfigError>(model, {.sample = a}, "1 for 2 inputs");
  check_refused<ConfigError>(model, {.sample = {{"left", a}, {"up", b}}}, "\"up\"");
  check_refused<ConfigError>(model, {.sample = {a, b}, .activation = "sigmoid"}, "2 outputs");
  check_refused<ConfigError>(model, {.sample = {a, b}, .labels = {"no", "yes"}}, "2 outputs");
}

TEST_CASE("the inputs of an export have the model's own names and the sample's dtypes") {
  const test::TempFolder folder;
  const auto loaded = [&](const ModelHandle& model, const at::Tensor& rows) {
    const int64_t version = export_model(model, folder / "e", {.sample = rows});
    return load_export(folder / "e", {.version = version});
  };
  const at::Tensor bytes = at::arange(6).view({2, 3}).to(at::kByte);
  const ExportedModel chain =
      loaded(Sequential({Input({3}, {.name = "pixels"}), Rescaling(0.5, {.name = "half"})}), bytes);
  CHECK(chain.inputs[0].name == "pixels");
  CHECK(chain.inputs[0].dtype == at::kByte);
  CHECK(chain.outputs[0].name == "predictions");
  CHECK(at::equal(chain.predict(bytes), bytes.to(at::kFloat) * 0.5));
  const Sequential unnamed({Flatten()});
  unnamed.build({-1, 3});
  CHECK(loaded(unnamed, at::ones({2, 3})).inputs[0].name == "input");
  const Input flags({3}, {.dtype = "bool", .name = "flags"});
  const at::Tensor truths = at::tensor({1, 0, 1, 0, 0, 1}).view({2, 3}).to(at::kBool);
  const ExportedModel graph =
      loaded(Functional({flags}, {Rescaling(2, {.name = "twice"})(flags)}), truths);
  CHECK(graph.inputs[0].dtype == at::kBool);
  CHECK(graph.outputs[0].name == "twice");
  CHECK(at::equal(graph.predict(truths), truths.to(at::kFloat) * 2));
}

TEST_CASE("exporting after training keeps trained weights and moving moments") {
  const Sequential model({BatchNormalization({.name = "norm"}), Dense(2, {.name = "logits"})});
  model.compile(
      {.optimizer = Adam(1e-2), .loss = SparseCategoricalCrossentropy({.from_logits = true})});
  const at::Tensor x = at::arange(64, at::kFloat).view({16, 4}).sin();
  model.fit(x, at::arange(16).remainder(2), {.epochs = 2, .verbose = 0});
  const test::TempFolder folder;
  export_model(model, folder / "e", {.sample = x});
  CHECK(test::difference(load_export(folder / "e").predict(x), model.predict(x), 0, 1e-6) == "");
}

TEST_CASE("versions are numbered consecutively, and the newest is loaded") {
  const test::TempFolder folder;
  CHECK(test::export_sample(folder / "e", 1) == 1);
  std::filesystem::create_directory(folder / "e/notes");
  std::filesystem::create_directory(folder / "e/000009");
  CHECK(test::export_sample(folder / "e", 5) == 10);
  CHECK(load_export(folder / "e").version == 10);
  CHECK(load_export(folder / "e", {.version = 1}).version == 1);
  CHECK(load_export(folder / "e/000001").version == 1);
  CHECK(load_export(folder / "e/000001/").version == 1);
  const at::Tensor first = load_export(folder / "e", {.version = 1}).predict(texts);
  CHECK(test::difference(first, load_export(folder / "e").predict(texts), 0, 1e-3) != "");
  CHECK_THROWS_WITH(load_export(folder / "e", {.version = 2}), Contains("version 2"));
  CHECK_THROWS_AS(load_export(folder / "e", {.version = 9}), FileError);
  CHECK_THROWS_AS(load_export(folder / "none"), FileError);
  int leftovers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "e")) {
    leftovers += entry.path().filename().string().starts_with(".");
  }
  CHECK(leftovers == 0);
}

TEST_CASE("a failed export leaves nothing behind") {
  const ExportOptions good = test::sample_export_options();
  ExportOptions options = good;
  options.activation = "softmaxx";
  check_refused<ConfigError>(test::sample_classifier(), options, "\"softmax\"");
  options = good;
  options.sample = ExportSample();
  check_refused<ConfigError>(test::sample_classifier(), options, "sample");
  options = good;
  options.labels = {"one", "two", "three"};
  check_refused<ConfigError>(test::sample_classifier(), options, "\"three\"");
  options = good;
  options.text = std::make_shared<test::WordTable>(std::vector<std::string>());
  check_refused<StateError>(test::sample_classifier(), options, "adapt()");
  check_refused<StateError>(Sequential({Dense(2)}), good, "built");
}

TEST_CASE("a model that could not be loaded is not exported") {
  const Sequential model({Dense(2)});
  model.build({-1, 3});
  for (const at::ScalarType dtype : {at::kChar, at::kShort, at::kHalf}) {
    check_refused<ConfigError>(model, {.sample = at::ones({2, 3}, dtype)}, dtype_name(dtype));
  }
  std::vector<at::Tensor> weights = model.get_weights();
  weights[1].fill_(NAN);
  model.set_weights(weights);
  check_refused<ConfigError>(model, {.sample = at::ones({2, 3})}, "finite");
}

TEST_CASE("an export does not move a model without compile()") {
  const test::TempFolder folder;
  const ModelHandle model = test::sample_classifier();
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}}, virtual_cpus(4));
  model->place_weights(model_layouts(mesh));
  const std::string before = model->weights()[0].layout().describe();
  export_model(model, folder / "e", test::sample_export_options());
  CHECK_FALSE(model->compiled());
  CHECK(model->weights()[0].layout().describe() == before);
  CHECK(load_error(folder / "e") == "");
}

TEST_CASE("a file in place of the export folder is a FileError") {
  const test::TempFolder folder;
  test::write_file(folder / "e", "text");
  CHECK_THROWS_AS(test::export_sample(folder / "e"), FileError);
  CHECK_THROWS_AS(load_export(folder / "e"), FileError);
}

TEST_CASE("if the first process cannot write an export, all processes throw") {
  const test::TempFolder folder;
  test::write_file(folder / "file", "text");
  test::register_word_table();
  const auto run = [&](int rank, const std::shared_ptr<Communicator>& communicator) {
    const Sequential model = test::sample_classifier();
    model.compile({.layouts = LayoutMap(test::rank_mesh({{"batch", 2}}, communicator))});
    const ExportOptions options = test::sample_export_options();
    test::expect(export_model(model, folder / "e", options) == (rank == 0 ? 1 : 0), "its number");
    try {
      export_model(model, folder / "file", options);
    } catch (const FileError&) {
      return;
    }
    test::expect(false, str("no error on rank ", rank));
  };
  CHECK_NOTHROW(test::run_ranks(2, run));
}

TEST_CASE("the sample is recomputed on loading, and a different result is refused") {
  register_layer("Drift", [](JsonObject& config) {
    return make_layer<DriftLayer>(take_layer_options(config));
  });
  const Sequential model({make_layer<DriftLayer>(LayerOptions{.name = "drift"})});
  model.build({-1, 3});
  const test::TempFolder folder;
  const std::string e = folder / "e";
  export_model(model, e, {.sample = at::ones({2, 3})});
  drift = 1 + 5e-6;
  CHECK_THAT(load_error(e), Contains("sample.safetensors") && Contains("difference"));
  // Other threads add up in another order.
  const int threads = at::get_num_threads();
  at::set_num_threads(threads + 1);
  CHECK(load_error(e) == "");
  at::set_num_threads(threads);
  drift = 1;
  CHECK(load_error(e) == "");
}

TEST_CASE("calls of a loaded export are replayed: folded, packed, and right when weights change") {
  for (const std::string dtype : {"float32", "float64"}) {
    CAPTURE(dtype);
    const double tolerance = dtype == "float64" ? 1e-12 : 1e-6;
    const Sequential model({Conv2D(8, 3, {.padding = "same", .use_bias = false, .dtype = dtype}),
                            BatchNormalization({.dtype = dtype}), ReLU({.dtype = dtype}),
                            Flatten({.dtype = dtype}), Dense(3, {.dtype = dtype})});
    model.build({-1, 6, 6, 2});
    const at::ScalarType type = dtype == "float64" ? at::kDouble : at::kFloat;
    const auto rows = [&](int64_t count) {
      return test::random_values({{count, 6, 6, 2}, at::kFloat}, uint64_t(count)).to(type);
    };
    const test::TempFolder folder;
    export_model(model, folder / "e", {.sample = rows(2)});
    const auto check_same = [&](const ExportedModel& loaded, int64_t count) {
      const DTensor x = pack(rows(count), loaded.layouts.data_layout("x", 4));
      const at::Tensor expected = loaded.model.outputs({x})[0].full();
      CHECK(test::difference(loaded.predict(rows(count)), expected, tolerance, tolerance) == "");
    };

    const ExportedModel loaded = load_export(folder / "e");
    const StepRecords& records = loaded.model.predict_step_records();
    for (int i = 0; i < 3; ++i) check_same(loaded, 2);
    CHECK(records.recorded == 1);
    CHECK(records.replayed == 2);
    CHECK(records.hoisted > 0);
    CHECK(records.fused == 1);
    CHECK(records.memory.planned > 0);
    for (int i = 0; i < 3; ++i) check_same(loaded, 5);
    CHECK(records.replayed == 3);
    for (Variable weight : loaded.model.weights()) {
      weight.assign(pack(weight.value().full() * 0.5 + 0.25, weight.layout()));
    }
    for (const int64_t count : {2, 5}) check_same(loaded, count);
    CHECK(records.replayed == 5);

    const auto check_mode = [&](const char* variable, int64_t replayed, bool hoists) {
      const test::EnvironmentScope never(variable, "never");
      const ExportedModel other = load_export(folder / "e");
      for (int i = 0; i < 3; ++i) check_same(other, 2);
      CHECK(other.model.predict_step_records().replayed == replayed);
      CHECK((other.model.predict_step_records().hoisted > 0) == hoists);
    };
    check_mode("TESSERA_STEP_PASSES", 2, false);
    check_mode("TESSERA_RECORD_STEPS", 0, false);
  }
}

}  // namespace export_test
