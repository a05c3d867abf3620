#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/losses/losses.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include <algorithm>

#include "tests/support/catch.hpp"

namespace loss_config_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Contains;

namespace {

const std::vector<std::pair<const char*, const char*>> classes = {
    {"BinaryCrossentropy", "binary_crossentropy"},
    {"BinaryFocalCrossentropy", "binary_focal_crossentropy"},
    {"CTC", "ctc"},
    {"CategoricalCrossentropy", "categorical_crossentropy"},
    {"CategoricalFocalCrossentropy", "categorical_focal_crossentropy"},
    {"CategoricalGeneralizedCrossEntropy", "categorical_generalized_cross_entropy"},
    {"CategoricalHinge", "categorical_hinge"},
    {"Circle", "circle"},
    {"CosineSimilarity", "cosine_similarity"},
    {"Dice", "dice"},
    {"Hinge", "hinge"},
    {"Huber", "huber_loss"},
    {"KLDivergence", "kl_divergence"},
    {"LogCosh", "log_cosh"},
    {"MeanAbsoluteError", "mean_absolute_error"},
    {"MeanAbsolutePercentageError", "mean_absolute_percentage_error"},
    {"MeanSquaredError", "mean_squared_error"},
    {"MeanSquaredLogarithmicError", "mean_squared_logarithmic_error"},
    {"Poisson", "poisson"},
    {"SparseCategoricalCrossentropy", "sparse_categorical_crossentropy"},
    {"SquaredHinge", "squared_hinge"},
    {"Tversky", "tversky"}};

DTensor value(const Shape& shape, double filled_with = 0.5) {
  static const Mesh mesh = create_mesh({{"batch", 2}});
  return filled(shape, filled_with, at::kFloat, Layout::replicated(mesh, int64_t(shape.size())));
}

LossHandle from(const std::string& json) { return loss_from_config(parse_json(json, "test")); }

}  // namespace

TEST_CASE("losses are known by Keras' names, class names and short names") {
  for (const auto& [class_name, name] : classes) {
    CHECK(make_loss(class_name)->class_name() == class_name);
    CHECK(make_loss(class_name)->name() == name);
    CHECK(make_loss(class_name)->can_be_replayed());
    if (class_name != std::string("Huber")) CHECK(make_loss(name)->class_name() == class_name);
  }
  CHECK(LossHandle("huber")->class_name() == "Huber");
  CHECK(LossHandle("mse")->class_name() == "MeanSquaredError");
  CHECK(LossHandle("MAE")->class_name() == "MeanAbsoluteError");
  CHECK(LossHandle("mape")->class_name() == "MeanAbsolutePercentageError");
  CHECK(LossHandle("msle")->class_name() == "MeanSquaredLogarithmicError");
  CHECK(LossHandle("kld")->class_name() == "KLDivergence");
  CHECK(LossHandle("bce")->class_name() == "BinaryCrossentropy");
  CHECK(MeanSquaredError({.name = "error"})->name() == "error");
  CHECK_THROWS_WITH(LossHandle("mean_square_error"), Contains("\"mean_squared_error\""));
}

TEST_CASE("loss_names() lists all losses, sorted") {
  const std::vector<std::string> names = loss_names();
  CHECK(names.size() == classes.size() + 6);
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const std::string& name : names) CHECK(make_loss(name));
}

TEST_CASE("every loss is rebuilt from its configuration") {
  for (const auto& [class_name, name] : classes) {
    const Json plain = serialized(make_loss(class_name));
    CHECK(plain.at("class_name") == class_name);
    Json config = plain.at("config");
    CHECK(config.at("reduction") == "sum_over_batch_size");
    config["reduction"] = "mean_with_sample_weight";
    config["name"] = "mine";
    if (config.contains("from_logits")) config["from_logits"] = true;
    if (config.contains("label_smoothing")) config["label_smoothing"] = 0.25;
    if (config.contains("axis")) config["axis"] = config["axis"].is_null() ? Json{1, 2} : Json(1);
    if (config.contains("ignore_class")) config["ignore_class"] = -1;
    if (config.contains("apply_class_balancing")) config["apply_class_balancing"] = true;
    if (config.contains("remove_diagonal")) config["remove_diagonal"] = false;
    for (const char* number : {"beta", "delta", "gamma", "margin"}) {
      if (config.contains(number)) config[number] = 2.5;
    }
    if (config.contains("q")) config["q"] = 0.25;
    if (config.contains("alpha")) {
      config["alpha"] = config["alpha"].is_array() ? Json{0.5, 2.0} : Json(0.75);
    }
    const LossHandle rebuilt = loss_from_config({{"class_name", class_name}, {"config", config}});
    CHECK(rebuilt->config() == config);
    CHECK(rebuilt->name() == "mine");
    CHECK(rebuilt->reduction() == Reduction::mean_with_sample_weight);
  }
  CHECK(SparseCategoricalCrossentropy({.from_logits = true})->config() ==
        Json({{"from_logits", true},
              {"ignore_class", nullptr},
              {"reduction", "sum_over_batch_size"},
              {"axis", -1},
              {"name", "sparse_categorical_crossentropy"}}));
}

TEST_CASE("Keras' serialization of a loss is read") {
  const LossHandle huber = from(R"({"module": "keras.losses", "class_name": "Huber", "config":
      {"delta": 2.0, "reduction": "sum", "name": "h"}, "registered_name": null})");
  CHECK(huber->config() == Json({{"delta", 2.0}, {"reduction", "sum"}, {"name", "h"}}));
  CHECK(from(R"("mae")")->class_name() == "MeanAbsoluteError");
  // Python's None.
  CHECK(from(R"({"class_name": "Hinge", "config": {"reduction": null}})")->reduction() ==
        Reduction::none);
  CHECK(from(R"({"class_name": "Hinge", "config": {"name": null}})")->name() == "hinge");
}

TEST_CASE("an invalid configuration of a loss is named") {
  CHECK_THROWS_WITH(from(R"({"class_name": "Huber", "config": {"detla": 2}})"),
                    Contains("[loss: config]") && Contains("write \"delta\""));
  CHECK_THROWS_WITH(from(R"({"class_name": "Huber", "config": {"delta": "2"}})"),
                    Contains("[loss: config.delta]") && Contains("a number"));
  CHECK_THROWS_WITH(from(R"({"class_name": "Huber", "config": {"reduction": "sums"}})"),
                    Contains("[loss: config.reduction]") && Contains("write \"sum\""));
  CHECK_THROWS_WITH(from(R"({"class_name": "Hubber", "config": {}})"), Contains("\"huber\""));
  CHECK_THROWS_WITH(from(R"({"config": {}})"), Contains("\"class_name\""));
  CHECK_THROWS_AS(from("3"), ConfigError);
  CHECK_THROWS_AS(CategoricalCrossentropy({.label_smoothing = 1.5}), ConfigError);
  CHECK_THROWS_AS(BinaryCrossentropy({.label_smoothing = -0.1}), ConfigError);
  CHECK_THROWS_AS(BinaryFocalCrossentropy({.label_smoothing = 2}), ConfigError);
  CHECK_THROWS_WITH(CategoricalFocalCrossentropy({.alpha = {}}), Contains("alpha"));
  CHECK_THROWS_WITH(CategoricalGeneralizedCrossEntropy({.q = 1}),
                    Contains("[categorical_generalized_cross_entropy] q lies between 0 and 1"));
}

TEST_CASE("shapes that a loss refuses are named") {
  CHECK_THROWS_AS((*CategoricalCrossentropy())(value({4}), value({4, 3})), ShapeError);
  CHECK_THROWS_AS((*BinaryCrossentropy())(value({4, 2}), value({4, 3})), ShapeError);
  CHECK_THROWS_WITH((*SparseCategoricalCrossentropy())(value({3}), value({4, 3})),
                    Contains("[sparse_categorical_crossentropy] labels must have shape (4,) for "
                             "predictions (4, 3). Received: (3,)."));
  CHECK_THROWS_WITH((*MeanSquaredError())(value({4, 3}), value({4, 3}), value({3})),
                    Contains("sample weights") && Contains("(3,)"));
  for (const char* name : {"mae", "mse", "huber", "hinge", "kld", "poisson", "cosine_similarity"}) {
    CHECK_THROWS_WITH(
        (*LossHandle(name))(value({4, 2}), value({4, 3})),
        Contains(LossHandle(name)->name()) && Contains("(4, 3)") && Contains("(4, 2)"));
    CHECK_THROWS_WITH((*LossHandle(name))(value({}), value({})), Contains("at least one axis"));
  }
  CHECK_THROWS_AS((*BinaryFocalCrossentropy())(value({4, 2}), value({4, 3})), ShapeError);
  const CategoricalFocalCrossentropy two_classes({.alpha = {1, 2}});
  CHECK_THROWS_WITH((*two_classes)(value({4, 3}), value({4, 3})),
                    Contains("[categorical_focal_crossentropy]") && Contains("2 numbers"));
  CHECK_THROWS_WITH((*CategoricalGeneralizedCrossEntropy())(value({3}), value({4, 3})),
                    Contains("[categorical_generalized_cross_entropy]") && Contains("(3,)"));
  CHECK_THROWS_WITH((*Circle())(value({3}), value({4, 3})),
                    Contains("[circle]") && Contains("(3,) and (4, 3)"));
  CHECK_THROWS_WITH((*CTC())(value({4, 2}, 0), value({4, 3})),
                    Contains("[ctc") && Contains("(4, 2) and (4, 3)"));
  CHECK_THROWS_WITH((*CTC())(value({4, 2}, 5), value({4, 6, 3})), Contains("[ctc"));
  const DTensor gap = pack(at::tensor({0, 1, 0, 1}).reshape({2, 2}), value({2, 2}).layout());
  CHECK_THROWS_WITH((*CTC())(gap, value({2, 6, 3})), Contains("[ctc") && Contains("0 before"));
  CHECK_THROWS_WITH((*Dice({.axis = {3}}))(value({4, 3}), value({4, 3})), Contains("3"));
  CHECK_THROWS_WITH((*CosineSimilarity({.axis = 2}))(value({4, 3}), value({4, 3})),
                    Contains("cosine_similarity"));
}

TEST_CASE("a batch-sharded hinge loss asks all devices whether its labels are 0 and 1") {
  const Mesh mesh = create_mesh({{"batch", 4}});
  const Layout layout = Layout::batch_sharded(mesh, "batch", 2);
  const DTensor scores = pack(at::randn({8, 3}), layout), labels = pack(at::ones({8, 3}), layout);
  CommLog log;
  const CommLogScope scope(log);
  CHECK((*Hinge())(labels, scores).layout().is_partial());
  CHECK(log.entries().size() == 1);
  CHECK((*CategoricalHinge())(labels, scores).layout().is_partial());
  CHECK((*Huber())(labels, scores).layout().is_partial());
  CHECK(log.entries().size() == 1);
}

}  // namespace loss_config_test
