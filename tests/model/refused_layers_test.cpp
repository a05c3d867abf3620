#include <set>

#include <tessera/tessera.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/layer_registry.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace refused_layers_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

namespace {

/// Returns the line that refuses a layer in a model; empty if the layer is read.
std::string refusal(const Json& layer) {
  const Json model = {{"class_name", "Sequential"},
                      {"config", {{"name", "s"}, {"layers", Json::array({layer})}}}};
  try {
    model_from_config(model, "m");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

Json layer_json_of(const std::string& name, const Json& config = Json::object()) {
  return {{"class_name", name}, {"config", config}};
}

const std::string own = "register your own class with register_layer().";

}  // namespace

TEST_CASE("no replacement is suggested for a layer of Keras that is not supported") {
  const Json golden = read_json_file(test::golden_path("keras_names.json").string());
  const std::vector<std::string> known = layer_class_names();
  const std::set<std::string> here(known.begin(), known.end());
  for (const Json& entry : golden.at("layers")) {
    const auto name = entry.get<std::string>();
    if (here.contains(name) || name == "Input" || name == "Lambda") continue;
    CAPTURE(name);
    const std::string line = refusal(layer_json_of(name));
    CHECK_THAT(line,
               Contains("Received: \"" + name + "\", a Keras layer that is not implemented. "));
    CHECK_THAT(line, EndsWith("To fix: " + own));
  }
  CHECK(refusal(layer_json_of("MelSpectrogram")) ==
        "[m: config.layers[0]] the layer class must be registered. Received: "
        "\"MelSpectrogram\", a Keras layer that is not implemented. To fix: " +
            own);
}

TEST_CASE("the layers that are called not implemented are not, and are Keras'") {
  const Json golden = read_json_file(test::golden_path("keras_names.json").string());
  const auto of_keras = golden.at("layers").get<std::set<std::string>>();
  const std::vector<std::string> known = layer_class_names();
  const std::set<std::string> here(known.begin(), known.end());
  const std::vector<std::string>& listed = keras_only_layers();
  CHECK(std::set<std::string>(listed.begin(), listed.end()).size() == listed.size());
  for (const std::string& name : listed) {
    CAPTURE(name);
    CHECK_FALSE(here.contains(name));
    CHECK(of_keras.contains(name));
  }
}

TEST_CASE("a mistyped name gets the nearest one, a user-defined name how to register it") {
  CHECK_THAT(refusal(layer_json_of("Densse")), EndsWith("To fix: write \"Dense\", or " + own));
  CHECK_THAT(refusal(layer_json_of("MyAttentionPooler")), EndsWith("To fix: " + own));
}

TEST_CASE("a Lambda of Keras is refused, because its function is Python code") {
  CHECK(refusal(layer_json_of("Lambda", {{"function", "f"}})) ==
        "[m: config.layers[0]] the layer class must be registered. Received: \"Lambda\", whose "
        "function is Python code. To fix: write the function as a layer class, and register it as "
        "\"Lambda\" with register_layer().");
}

TEST_CASE("a layer inside another one is refused at its JSON path") {
  const Json rnn = layer_json_of("RNN", {{"cell", layer_json_of("LSTMCel", {{"units", 2}})}});
  CHECK_THAT(refusal(layer_json_of("Bidirectional", {{"layer", rnn}})),
             Contains("[m: config.layers[0].config.layer.config.cell] the layer class must be "
                      "registered. Received: \"LSTMCel\"") &&
                 Contains("\"LSTMCell\""));
  const Json dense = layer_json_of("RNN", {{"cell", layer_json_of("Dense", {{"units", 2}})}});
  CHECK_THAT(refusal(dense), Contains("an RNNCell. Received: Dense"));
  const Json chain = layer_json_of("Sequential", {{"name", "c"}, {"layers", Json::array()}});
  CHECK_THAT(refusal(layer_json_of("Bidirectional", {{"layer", chain}})),
             Contains("config.layers[0].config.layer] a recurrent layer. Received: Sequential"));
}

TEST_CASE("an Input of texts is refused with a hint where they are looked up") {
  const Json texts = {{"batch_shape", {nullptr, 1}}, {"dtype", "string"}};
  CHECK(refusal(layer_json_of("InputLayer", texts)) ==
        "[m: config.layers[0].config.dtype] an input's dtype must be numeric or bool. Received: "
        "\"string\". To fix: "
        "look texts up before the model, with StringLookup or TextVectorization.");
}

TEST_CASE("quantized policies other than int8 are refused by name") {
  const Json float8 = layer_json_of("QuantizedFloat8DTypePolicy", {{"mode", "float8"}});
  CHECK(refusal(layer_json_of("Dense", {{"units", 2}, {"dtype", float8}})) ==
        "[m: config.layers[0].config.dtype.class_name] a policy of floating dtypes, or "
        "\"QuantizedDTypePolicy\" of mode int8. Received: \"QuantizedFloat8DTypePolicy\". To fix: "
        "save the model before it is quantized.");
  const Json int4 =
      layer_json_of("QuantizedDTypePolicy", {{"mode", "int4"}, {"source_name", "float32"}});
  CHECK_THAT(refusal(layer_json_of("Dense", {{"units", 2}, {"dtype", int4}})),
             Contains("config.layers[0].config.dtype, quantization] the mode is \"int8\"") &&
                 Contains("Received: \"int4\""));
}

TEST_CASE("unsupported options of layers are refused by name") {
  CHECK_THAT(
      refusal(layer_json_of("Conv1D", {{"filters", 2}, {"kernel_size", {1}}, {"lora_rank", 4}})),
      Contains("config.lora_rank] the value must be null: this option is not supported"));
  CHECK_THAT(refusal(layer_json_of("LayerNormalization", {{"rms_scaling", true}})),
             Contains("use RMSNormalization"));
}

}  // namespace refused_layers_test
