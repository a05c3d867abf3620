#include <string>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/layer_registry.hpp>

#include "tests/support/catch.hpp"

namespace hostile_config_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

/// Returns the error of reading a layer from this text.
std::string refusal(const std::string& text) {
  try {
    layer_from_config(parse_json(text, "model.json"), JsonPath("model.json"));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

/// Returns the JSON of a layer with this class name and configuration.
std::string with(const std::string& class_name, const std::string& config) {
  return "{\"class_name\": \"" + class_name + "\", \"config\": " + config + "}";
}

struct Hostile {
  std::string text;
  std::string prefix;  ///< what the error's brackets begin with
  std::string says;
};

void check(const Hostile& hostile) {
  CAPTURE(hostile.text.substr(0, 300));
  const std::string error = refusal(hostile.text);
  CHECK_THAT(error, Catch::Matchers::StartsWith("[" + hostile.prefix));
  CHECK_THAT(error, Contains(hostile.says));
  CHECK(error.find('\n') == std::string::npos);
  CHECK(error.size() < 700);
}

std::string nested(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += R"({"class_name":"Dense","config":)";
  return text + "1" + std::string(static_cast<size_t>(depth), '}');
}

}  // namespace

TEST_CASE("texts that are no serialized layer are refused") {
  const std::vector<Hostile> all = {
      {"[]", "model.json]", "an object"},
      {"null", "model.json]", "an object"},
      {"\"Dense\"", "model.json]", "an object"},
      {"{}", "model.json]", "\"class_name\""},
      {R"({"class_name": "Dense"})", "model.json]", "\"config\""},
      {R"({"class_name": 3, "config": {}})", "model.json: class_name]", "a text"},
      {R"({"class_name": "Dense", "config": []})", "model.json: config]", "an object"},
      {R"({"class_name": "Dense", "config": {}, "code": 1})", "model.json]", "\"code\""},
      {with("Dnese", "{}"), "model.json]", "\"Dense\""},
      {with("", "{}"), "model.json]", "Received: \"\""},
      {with("keras.layers.Dense", "{}"), "model.json]", "must be registered"},
      {with("Lambda", R"({"function": "os.system"})"), "model.json]", "\"Lambda\""},
      {with("Dense\\n] evil", "{}"), "model.json]", "\\x0a"},
      {with(std::string(5000, 'D'), "{}"), "model.json]", "..."},
      {nested(70), "model.json:1:", "64 deep"},
      {std::string(100000, '['), "model.json:1:65]", "64 deep"},
      {R"({"class_name": "Dense", "class_name": "Flatten", "config": {}})",
       "model.json:1:", "once"},
  };
  for (const Hostile& hostile : all) check(hostile);
}

TEST_CASE("an invalid configuration is refused") {
  const std::vector<Hostile> all = {
      {with("Dense", "{}"), "model.json: config]", "\"units\""},
      {with("Dense", R"({"units": 0})"), "model.json: config.units]", "Received: 0"},
      {with("Dense", R"({"units": -3})"), "model.json: config.units]", "Received: -3"},
      {with("Dense", R"({"units": 2.5})"), "model.json: config.units]", "2.5"},
      {with("Dense", R"({"units": 1e10})"), "model.json: config.units]", "integer"},
      {with("Dense", R"({"units": 4611686018427387904})"), "model.json: config.units]",
       "2147483647"},
      {with("Dense", R"({"units": 99999999999999999999})"), "model.json: config.units]", "integer"},
      {with("Dense", R"({"units": 1e400})"), "model.json:1:", "valid JSON"},
      {with("Dense", R"({"units": "3"})"), "model.json: config.units]", "\"3\""},
      {with("Dense", R"({"units": 3, "unit": 3})"), "model.json: config]", "\"unit\""},
      {with("Dense", R"({"units": 3, "use_bias": 2})"), "model.json: config.use_bias]", "true"},
      {with("Dense", R"({"units": 3, "activation": "sftmax"})"), "model.json: config.activation",
       "\"softmax\""},
      {with("Dense", R"({"units": 3, "kernel_initializer": {"class_name": "HeNormal"}})"),
       "model.json: config.kernel_initializer]", "\"config\""},
      {with("Dense", R"({"units": 3, "bias_regularizer": "l3"})"),
       "model.json: config.bias_regularizer", "\"l3\""},
      {with("Dense", R"({"units": 3, "bias_regularizer": {"class_name": "L1",
                         "config": {"l1": -1}}})"),
       "model.json: config.bias_regularizer", "not negative"},
      {with("Dense", R"({"units": 3, "lora_rank": 0})"), "model.json: config.lora_rank]", "from 1"},
      {with("Dense", R"({"units": 3, "name": "a/b"})"), "model.json: config.name]", "\"a/b\""},
      {with("Dense", R"({"units": 3, "name": "../../x"})"), "model.json: config.name]", "../"},
      {with("Dense", R"({"units": 3, "name": "a\u0000b"})"), "model.json: config.name]", "\\x00"},
      {with("Dense", R"({"units": 3, "name": "a\nb"})"), "model.json: config.name]", "\\x0a"},
      {with("Dense", R"({"units": 3, "name": ")" + std::string(300, 'n') + "\"}"),
       "model.json: config.name]", "256"},
      {with("Dense", R"({"units": 3, "dtype": "float33"})"), "model.json: config.dtype", "float33"},
      {with("Dense", R"({"units": 3, "dtype": {"class_name": "Loader", "config": {"name": "x"}}})"),
       "model.json: config.dtype.class_name]", "DTypePolicy"},
      {with("Dense", R"({"units": 3, "trainable": "yes"})"), "model.json: config.trainable]",
       "true"},
  };
  for (const Hostile& hostile : all) check(hostile);
}

TEST_CASE("invalid options of every layer are refused") {
  const std::vector<Hostile> all = {
      {with("Activation", "{}"), "model.json: config]", "\"activation\""},
      {with("Dropout", R"({"rate": 1.5})"), "model.json", "[0, 1)"},
      {with("Dropout", R"({"rate": 0.5, "noise_shape": [null, -4]})"), "model.json", "(-1, -4)"},
      {with("Dropout", R"({"rate": 0.5, "noise_shape": 4})"), "model.json: config.noise_shape]",
       "a list"},
      {with("Flatten", R"({"data_format": "NHWC"})"), "model.json", "\"channels_last\""},
      {with("Reshape", R"({"target_shape": [2, -1, -1]})"), "model.json", "(2, -1, -1)"},
      {with("Reshape", R"({"target_shape": [4294967296, 4294967296, 4294967296]})"), "model.json",
       "extents"},
      {with("Reshape", R"({"target_shape": 4})"), "model.json: config.target_shape]", "a list"},
      {with("Permute", R"({"dims": [0, 1]})"), "model.json", "(0, 1)"},
      {with("RepeatVector", R"({"n": 0})"), "model.json: config.n]", "Received: 0"},
      {with("Add", R"({"axis": 1})"), "model.json: config]", "\"axis\""},
      {with("Concatenate", R"({"axis": 1.5})"), "model.json: config.axis]", "1.5"},
      {with("Dot", R"({"axes": [1, 2, 3]})"), "model.json: config.axes]", "list of two"},
      {with("Dot", R"({"axes": []})"), "model.json: config.axes]", "list of two"},
      {with("Rescaling", R"({"scale": [[1], [2, 3]]})"), "model.json: config.scale[1]]",
       "equal lengths"},
      {with("Rescaling", R"({"scale": null})"), "model.json", "scale and offset"},
      {with("Normalization", R"({"mean": [1, 2], "variance": 3})"), "model.json", "(2,)"},
      {with("Normalization", R"({"axis": "last"})"), "model.json: config.axis]", "integer"},
  };
  for (const Hostile& hostile : all) check(hostile);
}

}  // namespace hostile_config_test
