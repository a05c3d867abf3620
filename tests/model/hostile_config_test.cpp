#include <tessera/tessera.hpp>

#include <algorithm>
#include <limits>
#include <random>
#include <stdexcept>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>

#include "tests/support/catch.hpp"

namespace hostile_config_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

/// Returns the Error of reading a configuration; "" if there is none. Other libraries' exceptions
/// propagate.
std::string error_of(const Json& json) {
  try {
    model_from_config(json);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Json attention_model() {
  const Input query({4, 6}, {.name = "query"});
  const Input value({4, 6}, {.name = "value"});
  const SymbolicTensor seen = MultiHeadAttention(2, 3, {.name = "attention"})({query, value});
  const SymbolicTensor image = Reshape({4, 6, 1}, {.name = "image"})(seen);
  const SymbolicTensor padded = ZeroPadding2D(1, {.name = "padded"})(image);
  const SymbolicTensor large = UpSampling2D(2, {.name = "large"})(padded);
  const SymbolicTensor convolved = Conv2D(2, 3, {.name = "convolved"})(large);
  const SymbolicTensor pooled = MaxPooling2D(2, {.name = "pooled"})(convolved);
  const SymbolicTensor flat = Flatten({.name = "flat"})(pooled);
  return serialize_layer(Functional({query, value}, {Dense(2, {.name = "out"})(flat)}).model());
}

Json sequence_model() {
  return serialize_layer(
      Sequential({Input({5, 3}), Bidirectional(LSTM(2, {.return_sequences = true})),
                  RNN({LSTMCell(2), GRUCell(2)}, {.return_sequences = true}), Conv1D(2, 2),
                  Conv1DTranspose(3, 2, {.strides = 2}), LayerNormalization(),
                  GlobalAveragePooling1D(), RepeatVector(2), Permute({2, 1}), Flatten(),
                  Dense(2, {.activation = "relu", .kernel_regularizer = L2(0.1)})})
          .model());
}

/// Collects every value of a configuration, the root first.
void collect(Json& json, std::vector<Json*>& values) {
  values.push_back(&json);
  if (!json.is_structured()) return;
  for (Json& each : json) collect(each, values);
}

const std::vector<Json>& nasty_values() {
  static const std::vector<Json> values = {nullptr,
                                           true,
                                           false,
                                           "",
                                           "x",
                                           "../../etc/passwd",
                                           0,
                                           -1,
                                           3,
                                           1.5,
                                           -1e308,
                                           std::numeric_limits<int64_t>::max(),
                                           std::numeric_limits<int64_t>::min(),
                                           std::numeric_limits<uint64_t>::max(),
                                           Json::array(),
                                           Json::object(),
                                           Json::array({Json::array()}),
                                           Json{{"class_name", "__keras_tensor__"}},
                                           Json{{"class_name", "Dense"}, {"config", 3}},
                                           Json{{"args", 1}, {"kwargs", Json::array()}},
                                           Json::array({"query", 0, -1}),
                                           Json::array({"out", 0, 0})};
  return values;
}

/// Mutates a configuration at a random value: replaces it, copies another one there, or deletes a
/// member.
void change(Json& json, std::mt19937& random) {
  std::vector<Json*> values;
  collect(json, values);
  Json& target = *values[random() % values.size()];
  switch (random() % 4) {
    case 0: {
      const Json other = *values[random() % values.size()];
      target = other;
      break;
    }
    case 1:
      if (target.is_structured() && !target.empty()) {
        auto at = target.begin();
        std::advance(at, static_cast<std::ptrdiff_t>(random() % target.size()));
        target.erase(at);
        break;
      }
      [[fallthrough]];
    default:
      target = nasty_values()[random() % nasty_values().size()];
  }
}

Json& call_of(Json& model, const std::string& layer) {
  for (Json& each : model["config"]["layers"]) {
    if (each["name"] == layer) return each["inbound_nodes"][0];
  }
  throw std::out_of_range(layer);
}

Json& config_of(Json& model, const std::string& layer) {
  for (Json& each : model["config"]["layers"]) {
    if (each["name"] == layer) return each["config"];
  }
  throw std::out_of_range(layer);
}

}  // namespace

TEST_CASE("call options must be true, false or null, and a layer's config an object", "[config]") {
  Json model = attention_model();
  REQUIRE(error_of(model) == "");
  for (const Json& value : {Json("x"), Json(2), Json(Json::array()), Json(Json::object())}) {
    Json wrong = model;
    call_of(wrong, "attention")["kwargs"]["use_causal_mask"] = value;
    CHECK_THAT(error_of(wrong), Contains("kwargs.use_causal_mask") && Contains("true or false"));
  }
  for (const Json& value : {Json("x"), Json(1), Json(Json::array({1, 2})), Json()}) {
    Json wrong = model;
    call_of(wrong, "attention")["kwargs"]["use_causal_mask"] = true;
    for (Json& layer : wrong["config"]["layers"]) {
      if (layer["name"] == "attention") layer["config"] = value;
    }
    CHECK_THAT(error_of(wrong), Contains("layers[") && Contains(".config"));
  }
}

TEST_CASE("sizes whose products overflow 64 bits are refused", "[config]") {
  const int64_t max = std::numeric_limits<int64_t>::max();
  const Json model = attention_model();
  Json padded = model;
  config_of(padded, "padded")["padding"] = Json::array({{max, 1}, {0, 0}});
  CHECK_THAT(error_of(padded), Contains("padding has counts from 0 to 2147483647 before and after "
                                        "each of 2 spatial axes. Received: 2 pairs, "
                                        "(9223372036854775807, 1), (0, 0)"));
  const int64_t large = std::numeric_limits<int32_t>::max();
  Json up = serialize_layer(Sequential({Input({2, 1}), UpSampling1D(2), UpSampling1D(2)}).model());
  Json& layers = up["config"]["layers"];
  layers[0]["config"]["batch_shape"][1] = large;
  layers[1]["config"]["size"] = large;
  layers[2]["config"]["size"] = large;
  CHECK_THAT(error_of(up),
             Contains("spatial axes of fewer than 2^62 elements. Received: 2147483647 "
                      "times "));
  Json transposed = serialize_layer(
      Sequential({Input({2, 1}), Conv1DTranspose(1, 1, {.strides = 2}),
                  Conv1DTranspose(1, 1, {.strides = 2}), Conv1DTranspose(1, 1, {.strides = 2})})
          .model());
  for (int i = 1; i <= 3; ++i) {
    transposed["config"]["layers"][size_t(i)]["config"]["strides"] = Json::array({large});
  }
  CHECK_THAT(error_of(transposed), Contains("fewer than 2^62 elements"));
}

TEST_CASE("calls may be listed in any order", "[config]") {
  const Input x({2}, {.name = "x"});
  SymbolicTensor y = x;
  for (int i = 0; i < 1000; ++i) y = Identity({.name = str("i", i)})(y);
  Json model = serialize_layer(Functional({x}, {y}).model());
  // Each call reads the result of the one after it.
  std::reverse(model["config"]["layers"].begin(), model["config"]["layers"].end());
  const ModelHandle read = model_from_config(model);
  CHECK(read->sublayers().size() == 1001);
  CHECK(read.model().output_shape({{-1, 2}}) == Shape{-1, 2});
}

TEST_CASE("no configuration makes a third-party library throw", "[config]") {
  std::mt19937 random(19);
  int refused = 0;
  for (const Json& model : {attention_model(), sequence_model()}) {
    REQUIRE(error_of(model) == "");
    for (int i = 0; i < 1500; ++i) {
      Json changed = model;
      for (uint32_t n = 0, count = 1 + random() % 3; n < count; ++n) change(changed, random);
      std::string error;
      INFO(to_json_text(changed));
      CHECK_NOTHROW(error = error_of(changed));
      CHECK(error.find('\n') == std::string::npos);
      refused += error.empty() ? 0 : 1;
    }
  }
  CHECK(refused > 2000);
}

}  // namespace hostile_config_test
