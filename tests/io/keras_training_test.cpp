// Tests that training continues where Keras, or another mesh, saved a model, by keras_training.zip
// of tests/golden.
#include <tessera/tessera.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/io/format/hdf5_file.hpp>
#include <tessera/framework/io/format/zip_archive.hpp>
#include <tessera/framework/io/keras/keras_checksum.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/keras_training.hpp"
#include "tests/support/warnings.hpp"

namespace keras_training_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

constexpr uint64_t max_bytes = 1 << 20;

ModelHandle loaded(const std::string& name) {
  const TempFolder folder;
  return load_model(archive_of(folder, name));
}

/// Describes the first step that differs by more than its tolerance; "" if none does.
std::string differs(const std::vector<double>& losses, const Json& expected, double first,
                    double others) {
  for (size_t i = 0; i < losses.size(); ++i) {
    const auto right = expected[i].get<double>();
    const double off = std::abs(losses[i] - right) / std::abs(right);
    if (!(off <= (i == 0 ? first : others))) {
      return str("step ", i + 1, ": ", losses[i], " for ", right, ", off by ", off);
    }
  }
  return "";
}

Json config_in(const std::string& path) {
  const ZipArchive archive(path);
  return Json::parse(archive.read(*archive.find("config.json"), max_bytes));
}

/// Reduces a configuration to what both write: functions by name, without the dtypes of metrics and
/// the arguments that Keras omits from most losses and metrics.
Json plain(Json json) {
  if (json.is_object() && json.value("class_name", "") == "function") return json["config"];
  for (const char* key : {"dtype", "axis", "from_sorted_ids"}) {
    if (json.is_object()) json.erase(key);
  }
  if (json.is_structured()) {
    for (Json& part : json) part = plain(part);
  }
  return json;
}

/// Wraps each metric of an output in a list, as Tessera writes it.
Json in_lists(Json metrics) {
  if (!metrics.is_structured() || metrics.contains("class_name")) return metrics;
  const bool flat = metrics.is_array() && std::none_of(metrics.begin(), metrics.end(), [](auto& m) {
                      return m.is_array() || m.is_null();
                    });
  if (flat) return metrics;
  for (Json& of : metrics) {
    if (!of.is_array() && !of.is_null()) of = Json::array({of});
  }
  return metrics;
}

/// Returns the paths of datasets, and the attributes of groups and datasets.
std::vector<std::string> listing(const std::string& path) {
  const ZipArchive archive(path);
  const ZipMember* member = archive.find("model.weights.h5");
  const Hdf5File file(archive.file(), {member->offset, member->bytes}, path);
  std::vector<std::string> lines;
  for (const Hdf5Dataset& dataset : file.datasets()) {
    lines.push_back(str(dataset.path, " ", dataset.dtype, " ", to_string(dataset.shape)));
  }
  return lines;
}

/// Returns layouts that shard the small model's kernels over "model", and their slots over "batch"
/// too.
LayoutMap sharded_layouts() {
  LayoutMap layouts(create_mesh({{"batch", 4}, {"model", 2}}, virtual_cpus(8)));
  layouts.add({.match = ".*/kernel",
               .layout = {unsharded, "model"},
               .slots = LayoutSpec{"batch", "model"}});
  return layouts;
}

ModelHandle compiled(const OptimizerHandle& optimizer, const LayoutMap& layouts = {}) {
  const Sequential model({Input({4}), Dense(6, {.activation = "tanh", .name = "hidden"}),
                          Dropout(0.3), Dense(3, {.name = "logits"})});
  model.compile({.optimizer = optimizer, .loss = "mse", .layouts = layouts});
  return model;
}

/// Freezes or frees the layer "hidden".
void set_hidden_trainable(const ModelHandle& model, bool trainable) {
  for (const auto& layer : model->sublayers()) {
    if (layer->name() == "hidden") layer->set_trainable(trainable);
  }
}

Examples some_data() { return data_of(keras_training_case("adam")); }

/// Overwrites the first element of a dataset with a float32 or int32, and makes the file one
/// without a checksum.
template <class T>
void overwrite(const std::string& path, const std::string& dataset, T value) {
  const uint64_t offset = *Hdf5File(path).find(dataset)->offset;
  std::string bytes = read_file(path);
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  bytes[bytes.find(hdf5_checksum_name)] = 'y';
  write_file(path, bytes);
}

/// A mean squared error that is not registered for configurations.
struct OwnLoss : Loss {
  OwnLoss() : Loss(Reduction::mean, "own") {}
  std::string class_name() const override { return "OwnLoss"; }
  Json config() const override { return Json::object(); }
  DTensor call(const DTensor& y_true, const DTensor& y_pred) const override {
    return ops::mean(ops::square(y_pred - y_true), {-1});
  }
};

/// Returns how many losses of a case are Keras'. Keras moves averages (from the third loss on) and
/// schedules (from the second) in steps that only accumulate gradients, see docs/keras.md.
size_t comparable_losses(const Json& training_case) {
  const auto name = training_case.at("name").get<std::string>();
  if (name.ends_with("_everything")) return 2;
  return name == "loss_scale_growing" ? 1 : training_case.at("losses").size();
}

/// Returns the compile configuration in the file of a model compiled with these options.
Json saved_config(const CompileOptions& options) {
  const Sequential model({Input({4}), Dense(3)});
  model.compile(options);
  const TempFolder folder;
  model.save(folder / "model.keras");
  const ModelHandle same = load_model(folder / "model.keras");
  same.save(folder / "same.keras");
  const Json config = config_in(folder / "model.keras");
  CHECK(config_in(folder / "same.keras") == config);
  return config.value("compile_config", Json());
}

}  // namespace

TEST_CASE("training a model saved by Keras continues as in Keras") {
  CHECK(keras_training().at("cases").size() == 64);
  for (const Json& each : keras_training().at("cases")) {
    const auto name = each.at("name").get<std::string>();
    CAPTURE(name);
    const bool half = name == "half";
    const Warnings warnings;
    const ModelHandle model = loaded(name);
    CHECK(warnings.text() == "");
    const auto losses = losses_of(model, data_of(each), comparable_losses(each));
    CHECK(differs(losses, each.at("losses"), half ? 1e-3 : 1e-6, half ? 1e-3 : 1e-5) == "");
  }
}

TEST_CASE("a model is saved as by Keras") {
  for (const Json& each : keras_training().at("cases")) {
    const auto name = each.at("name").get<std::string>();
    CAPTURE(name);
    const TempFolder folder;
    const std::string keras = archive_of(folder, name), ours = folder / "ours.keras";
    load_model(keras).save(ours);
    Json expected = plain(config_in(keras).at("compile_config"));
    // Options that Tessera does not have get their defaults.
    expected["steps_per_execution"] = 1;
    expected["jit_compile"] = !expected["run_eagerly"].get<bool>();
    for (const char* key : {"metrics", "weighted_metrics"}) expected[key] = in_lists(expected[key]);
    const Json written = plain(config_in(ours).at("compile_config"));
    CAPTURE(written.dump(), expected.dump());
    // Compares without the order of keys.
    CHECK(nlohmann::json(written) == nlohmann::json(expected));
    std::vector<std::string> datasets = listing(keras);
    // Keras on TensorFlow counts steps in int64.
    if (name == "int64_iteration") {
      std::replace(datasets.begin(), datasets.end(), std::string("/optimizer/vars/0 I64 ()"),
                   std::string("/optimizer/vars/0 I32 ()"));
    }
    CHECK(listing(ours) == datasets);
  }
}

TEST_CASE("training on another mesh continues as if uninterrupted") {
  const Examples data = some_data();
  for (const Json& each : keras_training().at("cases")) {
    if (each.at("data") != "small" || each.at("name") == "half") continue;
    const auto name = each.at("name").get<std::string>();
    CAPTURE(name);
    const OptimizerHandle optimizer = loaded(name)->compile_options().optimizer;
    const ModelHandle uninterrupted =
        compiled(optimizer_from_config(optimizer_to_config(optimizer)), sharded_layouts());
    losses_of(uninterrupted, data, 3);
    const TempFolder folder;
    uninterrupted.save(folder / "model.keras");
    const Json expected = losses_of(uninterrupted, data, 6);
    const Warnings warnings;
    const LayoutMap on_three(create_mesh({{"batch", 3}}, virtual_cpus(3)));
    const ModelHandle resumed = load_model(folder / "model.keras", {.layouts = on_three});
    CHECK(warnings.text() == "");
    CHECK(resumed->optimizer()->steps() == 3);
    CHECK(differs(losses_of(resumed, data, 6), expected, 1e-6, 1e-6) == "");
  }
}

TEST_CASE("load_weights loads the optimizer's variables if it has the same class") {
  const Examples data = some_data();
  const TempFolder folder;
  const std::string path = folder / "model.weights.h5";
  const ModelHandle model = compiled(Adam(0.01, {.amsgrad = true}));
  losses_of(model, data, 3);
  model->optimizer()->set_learning_rate(0.004);
  model.save_weights(path);
  const std::vector<double> expected = losses_of(model, data, 4);
  const ModelHandle same = compiled(Adam(0.01, {.amsgrad = true}));
  same.load_weights(path);
  CHECK(same->optimizer()->learning_rate() == Approx(0.004));
  CHECK(losses_of(same, data, 4) == expected);

  const ModelHandle other = compiled(Adam(0.01));
  {
    const Warnings warnings;
    other.load_weights(path);
    CHECK(warnings.text() ==
          str("Warning: ", path,
              ": the variables of the optimizer \"adam\" keep their initial values: it has ",
              "10, the file 14\n"));
  }
  CHECK(other->optimizer()->steps() == 0);
  CHECK(loss_of(other, data) == Approx(loss_of(same, data)).epsilon(0.5));
  {
    const Warnings warnings;
    other.load_weights(path);
    CHECK_THAT(warnings.text(), Contains("keep their values: it has 10, the file 14"));
  }
  CHECK(other->optimizer()->steps() == 1);

  const ModelHandle unlike = compiled(Adafactor(0.01));
  losses_of(unlike, data, 1);
  unlike.save_weights(path);
  const Warnings warnings;
  const ModelHandle norms = compiled(Adamax(0.01, {.use_ema = true}));
  norms.load_weights(path);
  CHECK_THAT(warnings.text(),
             Contains("\"adamax/hidden/kernel/average\" has shape (4, 6), the file (4,) of F32"));
  CHECK(warnings.lines() == 1);
}

TEST_CASE("slots of layers frozen after training are saved and read, on every mesh") {
  const Examples data = some_data();
  for (const MeshDims& dims : {MeshDims{{"batch", 1}}, MeshDims{{"batch", 2}, {"model", 2}}}) {
    for (const char* name : {"model.keras", "model.weights.h5"}) {
      CAPTURE(name);
      const TempFolder folder;
      const LayoutMap layouts(create_mesh(dims));
      const ModelHandle model = compiled(Adam(0.01), layouts);
      losses_of(model, data, 3);
      set_hidden_trainable(model, false);
      ModelHandle read = compiled(Adam(0.01), layouts);
      const Warnings warnings;
      if (name == std::string("model.keras")) {
        model.save(folder / name);
        read = load_model(folder / name, {.layouts = layouts});
        CHECK(read->trainable_weights().size() == 2);
      } else {
        model.save_weights(folder / name);
        losses_of(read, data, 1);
        set_hidden_trainable(read, false);
        read.load_weights(folder / name);
      }
      CHECK(warnings.text() == "");
      REQUIRE(model->optimizer()->variables().size() == 8);
      for (size_t i = 0; i < 8; ++i) {
        const Variable expected = model->optimizer()->variables()[i];
        bool found = false;
        for (const Variable& slot : read->optimizer()->variables()) {
          if (slot.path() != expected.path()) continue;
          found = true;
          CHECK(slot.value().full().equal(expected.value().full()));
        }
        CHECK(found);
      }
    }
  }
}

TEST_CASE("an impossible number in an optimizer's variables is refused, and nothing is changed") {
  const TempFolder folder;
  const std::string path = folder / "model.weights.h5";
  const ModelHandle model = compiled(LossScaleOptimizer(SGD(0.1)));
  losses_of(model, some_data(), 2);
  const auto refused = [&](const std::string& dataset, auto value) -> std::string {
    model.save_weights(path);
    overwrite(path, dataset, value);
    const ModelHandle other = compiled(LossScaleOptimizer(SGD(0.1)));
    const at::Tensor before = other.get_weights()[0];
    std::string error;
    try {
      other.load_weights(path);
    } catch (const FileError& failed) {
      error = failed.what();
    }
    CHECK(other.get_weights()[0].equal(before));
    CHECK(other->optimizer()->steps() == 0);
    return error;
  };
  CHECK_THAT(refused("/optimizer/vars/4", int32_t{-1}),
             Contains("\"/optimizer/vars/4\" is \"sgd/iteration\", a number of at least 0. "
                      "Received: -1"));
  CHECK_THAT(refused("/optimizer/vars/5", -0.1F), Contains("\"sgd/learning_rate\""));
  CHECK_THAT(refused("/optimizer/vars/5", std::nanf("")), Contains("Received: nan"));
  CHECK_THAT(refused("/optimizer/vars/3", 0.0F), Contains("dynamic_scale"));
  CHECK_THAT(refused("/optimizer/vars/3", std::numeric_limits<float>::infinity()),
             Contains("Received: inf"));
}

TEST_CASE("loss options that Keras' files lose are written") {
  const Json huber = saved_config({.optimizer = SGD(0.1), .loss = Huber({.delta = 2})});
  CHECK(huber.at("loss").at("config").at("delta") == 2);
  const Json cosine = saved_config({.optimizer = SGD(0.1), .loss = CosineSimilarity({.axis = 1})});
  CHECK(cosine.at("loss").at("config").at("axis") == 1);
  CHECK(cosine.at("loss").at("module") == "keras.losses");
  CHECK(!cosine.contains("auto_scale_loss"));
  const Json unscaled =
      saved_config({.optimizer = SGD(0.1), .loss = "mse", .auto_scale_loss = false});
  CHECK(unscaled.at("auto_scale_loss") == false);
}

TEST_CASE("the compile configuration is omitted if it cannot be expressed") {
  const Warnings warnings;
  CHECK(saved_config({.loss = "mse"}).is_null());
  CHECK(warnings.text() == "");
  CHECK(saved_config({.optimizer = SGD(0.1), .loss = LossHandle(std::make_shared<OwnLoss>())})
            .is_null());
  CHECK_THAT(warnings.text(), Contains("model.keras is saved without the compile configuration, so "
                                       "load_model() will not compile the model: ") &&
                                  Contains("\"OwnLoss\""));
  CHECK(warnings.lines() == 1);
  const auto choose = [](const Variable&) { return SGD(0.1); };
  CHECK(saved_config({.optimizer = MultiOptimizer(choose), .loss = "mse"}).is_null());
  CHECK(warnings.lines() == 2);
}

}  // namespace keras_training_test
