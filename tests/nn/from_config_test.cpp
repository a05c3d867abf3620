#include <tessera/framework/nn/config/from_config.hpp>

#include <map>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/array_option.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"

namespace from_config_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

template <class T>
T read(const Json& json) {
  return json_as<T>(json, JsonPath("model.json").key("x"));
}

Json seeded(const std::string& name, const Json& seed) {
  return {{"class_name", name}, {"config", {{"seed", seed}}}};
}

}  // namespace

TEST_CASE("initializers round-trip through Keras' configurations") {
  const Json file = read_json_file(golden_path("keras_layers.json").string());
  for (const Json& golden : file.at("initializers")) {
    CAPTURE(golden.dump());
    const auto initializer = read<InitializerHandle>(golden);
    CHECK(initializer->class_name() == golden.at("class_name"));
    const Json config = initializer->config();
    for (const auto& [key, value] : golden.at("config").items()) {
      if (key != "input_axes" && key != "output_axes") CHECK(config.at(key) == value);
    }
    const auto again = read<InitializerHandle>(serialized(initializer));
    CHECK(again->config() == config);
    const Seed seed{5, 6};
    CHECK(difference(again->draw({3, 4}, at::kFloat, seed).full(),
                     initializer->draw({3, 4}, at::kFloat, seed).full()) == "");
  }
}

TEST_CASE("initializers of other seeds and gains, by name and by class name") {
  CHECK(read<InitializerHandle>("he_normal")->class_name() == "HeNormal");
  CHECK(read<InitializerHandle>("HeNormal")->class_name() == "HeNormal");
  for (const auto& [alias, name] :
       std::map<std::string, std::string>{{"normal", "RandomNormal"},
                                          {"uniform", "RandomUniform"},
                                          {"one", "Ones"},
                                          {"zero", "Zeros"},
                                          {"OrthogonalInitializer", "Orthogonal"},
                                          {"IdentityInitializer", "Identity"}}) {
    CHECK(InitializerHandle(alias)->class_name() == name);
  }
  CHECK(read<InitializerHandle>(seeded("GlorotUniform", {3, 4}))->config().at("seed") ==
        Json({3, 4}));
  CHECK(read<InitializerHandle>(serialized(IdentityInitializer(2.5)))->config().at("gain") == 2.5);
  const Json pair = serialized(Orthogonal({.gain = 2, .seed = Seed{1, 2}}));
  CHECK(serialized(read<InitializerHandle>(pair)) == pair);
}

TEST_CASE("activations and objects that may be null") {
  CHECK(read<ActivationHandle>("tanh").name() == "tanh");
  CHECK(read<ActivationHandle>(nullptr).name() == "linear");
  CHECK_FALSE(read<RegularizerHandle>(nullptr));
  CHECK_FALSE(read<ConstraintHandle>(nullptr));
  CHECK(read<RegularizerHandle>("l2")->config().at("l2") == 0.01);
}

TEST_CASE("objects that cannot be made name their JSON path in one line") {
  CHECK_THROWS_WITH(read<InitializerHandle>("glorot"),
                    Contains("[model.json: x, initializer]") && Contains("\"glorot\""));
  CHECK_THROWS_WITH(read<InitializerHandle>(nullptr), Contains("[model.json: x]"));
  CHECK_THROWS_WITH(read<InitializerHandle>(seeded("HeNormal", 1.5)),
                    Contains("[model.json: x.config.seed]") && Contains("1.5"));
  CHECK_THROWS_WITH(read<InitializerHandle>(seeded("HeNormal", {1, 2, 3})),
                    Contains("list of two"));
  CHECK_THROWS_WITH(read<InitializerHandle>(seeded("HeNromal", 1)), Contains("HeNromal"));
  CHECK_THROWS_WITH(
      read<InitializerHandle>({{"class_name", "VarianceScaling"}, {"config", {{"mode", "fan"}}}}),
      Contains("[model.json: x.config.mode]") && Contains("\"fan_in\""));
  CHECK_THROWS_WITH(
      read<InitializerHandle>({{"class_name", "RandomNormal"}, {"config", {{"stddev", -1}}}}),
      Contains("[model.json: x, RandomNormal]") && Contains("stddev"));
  CHECK_THROWS_WITH(read<RegularizerHandle>({{"class_name", "L2"}, {"config", {{"l1", 0.1}}}}),
                    Contains("[model.json: x.config]") && Contains("\"l1\""));
  CHECK_THROWS_WITH(read<ConstraintHandle>({{"class_name", "MaxNorm"}}), Contains("\"config\""));
  CHECK_THROWS_WITH(read<ActivationHandle>("rleu"), Contains("[model.json: x, activation]"));
  CHECK_THROWS_WITH(read<ActivationHandle>(Json::object()), Contains("[model.json: x]"));
}

TEST_CASE("numbers round-trip through JSON") {
  CHECK(read<ArrayOption>(0.5).json() == 0.5);
  CHECK(read<ArrayOption>(nullptr).json().is_null());
  const Json table = Json::parse("[[1.0, 2.0, 3.0], [4.5, 5.0, 6.0]]");
  CHECK(read<ArrayOption>(table).shape() == Shape{2, 3});
  CHECK(read<ArrayOption>(table).json() == table);
  CHECK(ArrayOption({1, 2}).json() == Json({1.0, 2.0}));
  for (const char* wrong :
       {"[]", "[[1], [2, 3]]", "[1, [2]]", "[[1], 2]", "[\"a\"]", "\"a\"", "[[], []]", "{}"}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH(read<ArrayOption>(Json::parse(wrong)), Contains("[model.json: x"));
  }
}

}  // namespace from_config_test
