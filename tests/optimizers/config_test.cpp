// Names, configurations and invalid options of all optimizers.
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"

namespace config_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

using Names = std::vector<std::string>;

OptimizerHandle from_text(const std::string& text) {
  return optimizer_from_config(parse_json(text, "test"));
}

}  // namespace

TEST_CASE("the lists of names are Keras' class names") {
  CHECK(optimizer_names() == Names{"Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax",
                                   "Ftrl", "Lamb", "Lion", "Muon", "Nadam", "RMSprop", "SGD",
                                   "ScheduleFreeAdamW"});
  CHECK(schedule_names() == Names{"CosineDecay", "CosineDecayRestarts", "ExponentialDecay",
                                  "InverseTimeDecay", "PiecewiseConstantDecay", "PolynomialDecay"});
  for (const std::string& name : optimizer_names()) {
    CHECK(OptimizerHandle(name.c_str())->class_name() == name);
    CHECK(from_text(R"({"class_name": ")" + name + R"(", "config": {}})")->class_name() == name);
  }
  CHECK(OptimizerHandle("rmsprop")->class_name() == "RMSprop");
}

TEST_CASE("names are Keras' by default") {
  CHECK(SGD()->name() == "sgd");
  CHECK(RMSprop()->name() == "rm_sprop");
  CHECK(AdamW(0.1, {.name = "decoupled"})->name() == "decoupled");
  CHECK(Adam()->config().at("name") == "adam");
}

TEST_CASE("keys unknown to Keras are written only for options other than Keras'") {
  CHECK_FALSE(Adam()->config().contains("epsilon_on_corrected_root"));
  const Adam adam(0.1, {.epsilon_on_corrected_root = true});
  CHECK(optimizer_from_config(optimizer_to_config(adam))->config() == adam->config());
  CHECK(adam->config().at("epsilon_on_corrected_root") == true);
}

TEST_CASE("an invalid configuration is named") {
  CHECK_THROWS_WITH(from_text(R"({"class_name": "Adma", "config": {}})"),
                    Catch::StartsWith("[optimizer]") && Catch::Contains("\"adma\"") &&
                        Catch::EndsWith("To fix: write \"adam\"."));
  CHECK_THROWS_WITH(from_text(R"({"class_name": "Adam", "config": {"learning_rat": 0.1}})"),
                    Catch::StartsWith("[optimizer") && Catch::Contains("\"learning_rat\"") &&
                        Catch::Contains("\"learning_rate\""));
  CHECK_THROWS_WITH(from_text(R"({"class_name": "Adam", "config": {"beta_1": "x"}})"),
                    Catch::Contains("config.beta_1"));
  CHECK_THROWS_WITH(from_text(R"({"clas_name": "Adam"})"), Catch::Contains("class_name"));
  CHECK_THROWS_WITH(from_text(R"({"class_name": "Adam", "config": {"learning_rate":
                              {"class_name": "CosinDecay", "config": {}}}})"),
                    Catch::Contains("\"CosinDecay\"") && Catch::Contains("\"CosineDecay\""));
  CHECK_THROWS_WITH(
      from_text(R"({"class_name": "Adam", "config": {"learning_rate":
                              {"class_name": "CosineDecay", "config": {}}}})"),
      Catch::Contains("config.learning_rate") && Catch::Contains("initial_learning_rate"));
  CHECK_THROWS_WITH(schedule_from_config(parse_json(
                        R"({"class_name": "CosineDecay", "config": {"initial_learning_rate": 1,
                        "decay_steps": 4, "alfa": 0}})",
                        "test")),
                    Catch::Contains("\"alfa\"") && Catch::Contains("\"alpha\""));
  CHECK_THROWS_AS(from_text(R"({"class_name": "AdamW", "config": {"weight_decay": null}})"),
                  ConfigError);
}

TEST_CASE("invalid options are named") {
  CHECK_THROWS_WITH(Adam(0.1, {.clipnorm = 1, .clipvalue = 0.5}),
                    "[Adam] at most one of clipnorm, clipvalue and global_clipnorm may be set. "
                    "Received: clipnorm=1, clipvalue=0.5. To fix: keep one of them.");
  CHECK_THROWS_WITH(SGD(0.1, {.gradient_accumulation_steps = 1}),
                    "[SGD] gradient_accumulation_steps must be at least 2. Received: 1. To fix: "
                    "give a larger one or leave it out.");
  CHECK_THROWS_WITH(SGD(0.1, {.use_ema = true, .ema_momentum = 1.5}),
                    "[SGD] ema_momentum lies in [0, 1]. Received: 1.5. To fix: use 0.99.");
  CHECK_NOTHROW(SGD(0.1, {.ema_momentum = 1.5}));
  CHECK_THROWS_WITH(SGD(0.1, {.use_ema = true, .ema_overwrite_frequency = 0}),
                    Catch::Contains("ema_overwrite_frequency"));
  CHECK_THROWS_WITH(SGD(0.1, {.loss_scale_factor = 0}), Catch::Contains("loss_scale_factor"));
  CHECK_THROWS_WITH(SGD(0.1, {.clipnorm = -1}), Catch::Contains("clipnorm"));
  CHECK_THROWS_WITH(SGD(0.1, {.clipvalue = -1}), Catch::Contains("clipvalue"));
  CHECK_THROWS_WITH(SGD(0.1, {.global_clipnorm = -1}), Catch::Contains("global_clipnorm"));
  CHECK_THROWS_WITH(AdamW(0.1, {.weight_decay = std::nullopt}),
                    "[AdamW] weight_decay is a number. Received: none. To fix: use Adam, or "
                    "0.004.");
  CHECK_THROWS_AS(RMSprop(0.1, {.rho = 2}), ConfigError);
  CHECK_THROWS_AS(Adagrad(0.1, {.initial_accumulator_value = -1}), ConfigError);
  CHECK_THROWS_AS(Adadelta(0.1, {.rho = -1}), ConfigError);
  CHECK_THROWS_AS(Adamax(0.1, {.beta_1 = 1}), ConfigError);
  CHECK_THROWS_AS(Nadam(0.1, {.epsilon = -1}), ConfigError);
  CHECK_THROWS_WITH(Lion(0.1, {.beta_1 = 0}),
                    "[Lion] beta_1 is positive. Received: 0. To fix: use 0.9.");
  CHECK_THROWS_AS(Lamb(0.1, {.beta_2 = 1}), ConfigError);
  CHECK_THROWS_AS(Adafactor(0.1, {.clip_threshold = 0}), ConfigError);
  CHECK_THROWS_AS(Adafactor(0.1, {.beta_2_decay = 0.1}), ConfigError);
  CHECK_THROWS_WITH(Ftrl(0.1, {.learning_rate_power = 1}), Catch::Contains("learning_rate_power"));
  CHECK_THROWS_AS(ScheduleFreeAdamW(0.1, {.beta_1 = 0}), ConfigError);
  CHECK_THROWS_WITH(Muon(0.1, {.exclude_layers = {"(head"}}),
                    Catch::StartsWith("[Muon, exclude_layers] an RE2 expression"));
}

TEST_CASE("exclusions must come before the first step and are expressions") {
  const SGD sgd(0.1, {.weight_decay = 0.1});
  CHECK_THROWS_WITH(sgd->exclude_from_weight_decay({.var_names = {"bias", "(gamma"}}),
                    Catch::StartsWith("[SGD, var_names] an RE2 expression. Received: \"(gamma\""));
  Variable w("dense/bias", pack(at::ones({4}), default_layout(1)));
  sgd->build({w});
  CHECK_THROWS_WITH(sgd->exclude_from_weight_decay({.var_list = {w}}),
                    "[SGD] exclusions must be set before the optimizer is built. Received: an "
                    "optimizer of 1 variables. To fix: call exclude_from_weight_decay() before "
                    "compile() or the first step.");
}

}  // namespace config_test
