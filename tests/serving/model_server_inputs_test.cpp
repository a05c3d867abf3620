// Tests of the inputs and outputs of models that are served: names, dtypes, shapes and values.
#include <tessera/framework/serving/model_server.hpp>
#include <tessera/tessera.hpp>

#include <openssl/evp.h>

#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/datasets/files/image.hpp>
#include <tessera/framework/base/json.hpp>

#include "tests/serving/running_server.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/sample_export.hpp"

namespace model_server_inputs_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::HttpAnswer;
using test::RunningServer;

namespace {

std::string to_base64(const std::string& bytes) {
  std::string text(4 * (bytes.size() / 3 + 1) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

const std::string predict = "/v1/models/imdb:predict";

/// Returns the answer's JSON; its status must be 200.
Json answer_of(const RunningServer& server, const std::string& body) {
  const HttpAnswer answer = server.post(predict, body);
  CAPTURE(body, answer.body);
  REQUIRE(answer.status == 200);
  return parse_json(answer.body, "answer");
}

void check_refused(const RunningServer& server, const std::string& body, const std::string& says) {
  CAPTURE(body);
  const HttpAnswer answer = server.post(predict, body);
  CHECK(answer.status == 400);
  CHECK_THAT(parse_json(answer.body, "answer")["error"].get<std::string>(), Contains(says));
}

Json signature_of(const RunningServer& server) {
  const Json metadata = parse_json(server.get("/v1/models/imdb/metadata").body, "metadata");
  return metadata["metadata"]["signature_def"]["signature_def"]["serving_default"];
}

std::string dims_of(const Json& tensor) {
  std::string text;
  for (const Json& dim : tensor["tensor_shape"]["dim"])
    text += dim["size"].get<std::string>() + " ";
  return text;
}

/// Exports a model of two inputs: "sum" is 2a + b in each column, "flag" is the mask as a number.
void export_two(const std::string& folder) {
  const Input a({2}, {.name = "a"});
  const Input mask({1}, {.dtype = "bool", .name = "mask"});
  const Input b({2}, {.dtype = "int64", .name = "b"});
  const SymbolicTensor sum = Add({.name = "sum"})({Rescaling(2)(a), Rescaling(1)(b)});
  const Functional model({a, mask, b}, {sum, Rescaling(1, {.name = "flag"})(mask)});
  export_model(
      model, folder,
      {.sample = {at::ones({1, 2}), at::ones({1, 1}, at::kBool), at::ones({1, 2}, at::kLong)}});
}

}  // namespace

TEST_CASE("the only input of a model is taken by its own name") {
  const Input rows({3}, {.name = "input_layer"});
  const Functional model({rows}, {Rescaling(2, {.name = "twice"})(rows)});
  const test::TempFolder folder;
  export_model(model, folder / "e", {.sample = at::ones({1, 3})});
  RunningServer server(folder / "e");
  const Json expected = Json::array({{2, 4, 6}, {8, 10, 12}});
  for (const char* body :
       {R"({"instances": [{"input_layer": [1, 2, 3]}, {"input_layer": [4, 5, 6]}]})",
        R"({"instances": [{"input": [1, 2, 3]}, [4, 5, 6]]})"}) {
    CHECK(answer_of(server, body)["predictions"] == expected);
  }
  for (const char* body : {R"({"inputs": {"input_layer": [[1, 2, 3], [4, 5, 6]]}})",
                           R"({"inputs": [[1, 2, 3], [4, 5, 6]]})"}) {
    CHECK(answer_of(server, body)["outputs"] == expected);
  }
  check_refused(server, R"({"inputs": {"input_layers": [[1, 2, 3]]}})", "write \"input_layer\"");
  const Json signature = signature_of(server);
  CHECK(signature["inputs"]["input_layer"]["dtype"] == "DT_FLOAT");
  CHECK(dims_of(signature["inputs"]["input_layer"]) == "-1 3 ");
  CHECK(dims_of(signature["outputs"]["twice"]) == "-1 3 ");
}

TEST_CASE("a model with several inputs and outputs is served by their names") {
  const test::TempFolder folder;
  export_two(folder / "e");
  RunningServer server(folder / "e");
  const Json rows =
      answer_of(server, R"({"instances": [{"a": [1, 2], "b": [10, 20], "mask": [true]},
                                {"mask": [false], "b": [30, 40], "a": [0.5, 1]}]})");
  CHECK(rows["predictions"] ==
        Json::array({{{"sum", {12, 24}}, {"flag", {1}}}, {{"sum", {31, 42}}, {"flag", {0}}}}));
  const Json columns =
      answer_of(server, R"({"inputs": {"a": [[1, 2], [0.5, 1]], "b": [[10, 20], [30, 40]],
                             "mask": [[true], [false]]}})");
  CHECK(columns["outputs"] == Json({{"sum", {{12, 24}, {31, 42}}}, {"flag", {{1}, {0}}}}));
  const auto body = [](const std::string& a, const std::string& b, const std::string& mask) {
    return R"({"instances": [{"a": )" + a + R"(, "b": )" + b + R"(, "mask": )" + mask + "}]}";
  };
  check_refused(server, body("[1, 2]", "[1, 2]", "[1]"),
                "[request, mask] the input takes true and false. Received: numbers");
  check_refused(server, body("[true, false]", "[1, 2]", "[true]"),
                "[request, a] the input takes numbers. Received: true or false");
  check_refused(server, body("[1, 2]", "[1, 2.5]", "[true]"), "[request, b]");
  check_refused(server, body("\"x\"", "[1, 2]", "[true]"), "takes numbers. Received: texts");
  check_refused(server, body("[1, 2]", "[1, 2, 3]", "[true]"),
                "takes instances of the shape (-1, 2). Received: (1, 3)");
  check_refused(server, R"({"instances": [{"a": [1, 2], "b": [1, 2]}]})", "none called \"mask\"");
  check_refused(server, R"({"instances": [[1, 2]]})", "are given by name");
  const Json signature = signature_of(server);
  CHECK(signature["inputs"].size() == 3);
  CHECK(signature["inputs"]["mask"]["dtype"] == "DT_BOOL");
  CHECK(signature["inputs"]["b"]["dtype"] == "DT_INT64");
  CHECK(signature["inputs"]["b"]["name"] == "b");
  CHECK(signature["outputs"]["sum"]["dtype"] == "DT_FLOAT");
  CHECK(dims_of(signature["outputs"]["flag"]) == "-1 1 ");
}

TEST_CASE("an error of shape names the request's own shape, alone and beside others") {
  const Sequential model({Dense(1)});
  model.build({-1, 2});
  const test::TempFolder folder;
  export_model(model, folder / "e", {.sample = at::ones({1, 2})});
  RunningServer server(folder / "e");
  check_refused(server, R"({"instances": [[1, 2, 3]]})",
                "takes instances of the shape (-1, 2). Received: (1, 3). To fix: send that shape");
  check_refused(server, R"({"instances": [1, 2, 3]})", "Received: (3,)");
}

TEST_CASE("texts are taken in base64, by the name that metadata gives") {
  const test::TempFolder folder;
  test::export_sample(folder / "e");
  RunningServer server(folder / "e");
  const Json plain = answer_of(server, R"({"instances": ["good fun"]})");
  CHECK(answer_of(server, R"({"instances": [{"b64": "Z29vZCBmdW4="}]})") == plain);
  CHECK(answer_of(server, R"({"instances": [{"text": {"b64": "Z29vZCBmdW4="}}]})") == plain);
  check_refused(server, R"({"instances": [true]})", "takes texts. Received: numbers");
  CHECK(signature_of(server)["inputs"]["text"]["dtype"] == "DT_STRING");
}

TEST_CASE("pictures are taken as files in base64") {
  const auto export_pictures = [](const std::string& folder, const Shape& size) {
    const Input pixels(size, {.name = "pixels"});
    const Functional model({pixels}, {Flatten()(pixels)});
    export_model(model, folder, {.sample = at::zeros({1, 2, 3, 1})});
  };
  const std::string picture = encode_png(
      {.height = 2, .width = 3, .channels = 1, .pixels = {0, 50, 100, 150, 200, 255}}, "test");
  const std::string b64 = R"({"b64": ")" + to_base64(picture) + "\"}";
  const Json row = {0, 50, 100, 150, 200, 255};
  const test::TempFolder folder;
  export_pictures(folder / "e", {2, 3, 1});
  RunningServer server(folder / "e");
  CHECK(answer_of(server, "{\"instances\": [" + b64 + ", {\"pixels\": " + b64 +
                              "}]}")["predictions"] == Json::array({row, row}));
  CHECK(answer_of(server, "{\"inputs\": {\"pixels\": [" + b64 + "]}}")["outputs"] ==
        Json::array({row}));
  check_refused(server, R"({"instances": [{"b64": "AAAA"}]})",
                "[request, pixels[0]] a picture: a JPEG, PNG, WebP, BMP or GIF file");
  check_refused(server, R"({"instances": [{"b64": ")" + to_base64(picture.substr(0, 60)) + "\"}]}",
                "request, pixels[0]");
  check_refused(server, R"({"instances": ["a text"]})", "takes numbers. Received: texts");
  check_refused(server, "{\"instances\": [" + b64 + ", \"a text\"]}", "takes numbers");
  const std::string wide =
      encode_png({.height = 1, .width = 3, .channels = 1, .pixels = {0, 50, 100}}, "test");
  check_refused(server, R"({"instances": [{"b64": ")" + to_base64(wide) + "\"}]}",
                "a picture has height 2 and width 3. Received: 1 and 3. To fix: resize it");
}

TEST_CASE("bytes are integers from 0 to 255") {
  const Sequential model({Input({2}, {.dtype = "uint8", .name = "pixels"}), Rescaling(2)});
  const test::TempFolder folder;
  export_model(model, folder / "e", {.sample = at::ones({1, 2}, at::kByte)});
  RunningServer server(folder / "e");
  CHECK(answer_of(server, R"({"instances": [{"pixels": [0, 255]}]})")["predictions"] ==
        Json::array({{0, 510}}));
  check_refused(server, R"({"instances": [[1, 256]]})", "from 0 to 255. Received: another one");
  check_refused(server, R"({"instances": [[1, -1]]})", "from 0 to 255");
  check_refused(server, R"({"instances": [[1, 1.5]]})", "Received: a fraction");
  CHECK(signature_of(server)["inputs"]["pixels"]["dtype"] == "DT_UINT8");
}

}  // namespace model_server_inputs_test
