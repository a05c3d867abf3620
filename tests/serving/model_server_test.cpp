#include <tessera/framework/serving/model_server.hpp>

#include <filesystem>
#include <mutex>
#include <thread>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>

#include "tests/serving/running_server.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/sample_export.hpp"

namespace model_server_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using namespace std::chrono_literals;
using test::HttpAnswer;
using test::HttpClient;
using test::RunningServer;

namespace {

const std::string predict = "/v1/models/imdb:predict";

Json json_of(const HttpAnswer& answer) { return parse_json(answer.body, "answer"); }

at::Tensor rows_of(const Json& list) {
  std::vector<at::Tensor> rows;
  for (const Json& row : list) rows.push_back(at::tensor(row.get<std::vector<double>>()));
  return at::stack(rows);
}

}  // namespace

TEST_CASE("a server answers like the exported model") {
  const test::TempFolder folder;
  test::export_sample(folder / "e");
  const ExportedModel model = load_export(folder / "e");
  RunningServer server(folder / "e");
  const std::vector<std::string> texts{"good fun", "awful", ""};
  const HttpAnswer answer =
      server.post(predict, R"({"instances": ["good fun", {"text": "awful"}, ""]})");
  REQUIRE(answer.status == 200);
  const at::Tensor expected = model.predict(texts);
  CHECK(test::difference(rows_of(json_of(answer)["predictions"]), expected.to(at::kDouble), 0,
                         1e-6) == "");
  const auto decided = model.decide(expected);
  for (size_t i = 0; i < 3; ++i) CHECK(json_of(answer)["labels"][i] == decided[i].first);
  CHECK(json_of(server.post(predict, R"({"inputs": ["good fun"]})")).contains("outputs"));
  CHECK(server.post("/v1/models/imdb/versions/1:predict", R"({"instances": ["a"]})").status == 200);
}

TEST_CASE("a server describes what it serves") {
  const test::TempFolder folder;
  test::export_sample(folder / "e");
  RunningServer server(folder / "e");
  for (const char* path : {"/v1/models/imdb", "/v1/models/imdb/versions/1"}) {
    const Json status = json_of(server.get(path))["model_version_status"];
    CHECK(status.dump() == R"([{"version":"1","state":"AVAILABLE",)"
                           R"("status":{"error_code":"OK","error_message":""}}])");
  }
  const Json metadata = json_of(server.get("/v1/models/imdb/metadata"));
  CHECK(metadata["model_spec"]["name"] == "imdb");
  const Json signature = metadata["metadata"]["signature_def"]["signature_def"]["serving_default"];
  CHECK(signature["inputs"]["text"]["dtype"] == "DT_STRING");
  CHECK(signature["outputs"]["predictions"]["tensor_shape"]["dim"][1]["size"] == "2");
  CHECK(metadata["labels"][1] == "positive");
  CHECK(json_of(server.get("/healthz"))["status"] == "ok");
}

TEST_CASE("invalid paths, methods and versions are refused") {
  const test::TempFolder folder;
  test::export_sample(folder / "e");
  RunningServer server(folder / "e");
  for (const char* path :
       {"/", "/v1/models", "/v1/models/", "/v1/models/other", "/v1/models/imdb/",
        "/v1/models/imdb2", "/v1/models/imdb/versions", "/v1/models/../imdb",
        "/v1/models/imdb/versions/", "/v1/models/imdb/versions/x", "/v1/models/imdb/versions/-1",
        "/v1/models/imdb/versions/2", "/v1/models/imdb/versions/99999999999999999999",
        "/v1/models/imdb/versions/1/metadataX", "/v1/models/imdb:classify", "/v1/models/%69mdb",
        "//v1/models/imdb", "/V1/models/imdb"}) {
    CAPTURE(path);
    CHECK(server.get(path).status == 404);
    CHECK(json_of(server.get(path))["error"].is_string());
  }
  CHECK_THAT(json_of(server.get("/v1/models/imdb/versions/2"))["error"].get<std::string>(),
             Contains(R"(version 1 is served. Received: "/v1/models/imdb/versions/2")"));
  CHECK(server.get(predict).status == 405);
  CHECK(server.post("/v1/models/imdb", "{}").status == 405);
  CHECK(server.post("/v1/models/imdb/versions/2:predict", R"({"instances": ["a"]})").status == 404);
}

TEST_CASE("requests that do not fit the model are refused") {
  const test::TempFolder folder;
  test::export_sample(folder / "e");
  RunningServer server(folder / "e", {.worker = {.max_batch = 4}});
  const auto status = [&](const std::string& body) { return server.post(predict, body).status; };
  CHECK(status(R"({"instances": [[1, 2, 3]]})") == 400);
  CHECK(status(R"({"instances": ["a", "b", "c", "d", "e"]})") == 413);
  CHECK(status(R"({"instances": ["a", "b", "c", "d"]})") == 200);
  CHECK(status("{}") == 400);
}

TEST_CASE("a model of numbers is served too") {
  const Sequential model({Dense(2, {.kernel_initializer = "ones", .name = "dense"})});
  model.build({-1, 3});
  const test::TempFolder folder;
  export_model(model, folder / "e", {.sample = at::ones({1, 3})});
  RunningServer server(folder / "e", {.worker = {.batch_window = 2ms}});
  const HttpAnswer answer = server.post(predict, R"({"instances": [[1, 2, 3], [4, 5, 6]]})");
  REQUIRE(answer.status == 200);
  const at::Tensor x = at::arange(1, 7).to(at::kFloat).view({2, 3});
  CHECK(test::difference(rows_of(json_of(answer)["predictions"]), model.predict(x).to(at::kDouble),
                         0, 1e-6) == "");
  const auto status = [&](const std::string& body) { return server.post(predict, body).status; };
  CHECK(status(R"({"instances": ["text"]})") == 400);
  CHECK(status(R"({"instances": [[1, 2]]})") == 400);
  CHECK(status(R"({"instances": [1, 2]})") == 400);
  CHECK(status(R"({"instances": [[[1, 2, 3]]]})") == 400);
  CHECK(status(R"({"instances": [[3e38, 3e38, 3e38]]})") == 400);
  CHECK_FALSE(json_of(answer).contains("labels"));
}

TEST_CASE("requests that wait together are batched, and each gets its own answer") {
  const test::TempFolder folder;
  test::export_sample(folder / "e");
  const ExportedModel model = load_export(folder / "e");
  const std::vector<std::string> words{"good", "great", "bad", "awful", "fun", "sad"};
  const at::Tensor expected = model.predict(words).to(at::kDouble);
  RunningServer server(folder / "e", {.worker = {.max_batch = 8, .batch_window = 20ms}});
  std::mutex mutex;
  int right = 0;
  std::vector<std::thread> clients;
  for (size_t c = 0; c < words.size(); ++c) {
    clients.emplace_back([&, c] {
      HttpClient client(server.port());
      for (int i = 0; i < 20; ++i) {
        // Every third request is refused and does not affect the others.
        const std::string text = i % 3 == 2 ? "1" : "\"" + words[c] + "\"";
        const HttpAnswer answer = client.post(predict, "{\"instances\": [" + text + "]}");
        const bool good = i % 3 == 2 ? answer.status == 400
                                     : test::difference(rows_of(json_of(answer)["predictions"])[0],
                                                        expected[int64_t(c)], 0, 1e-6) == "";
        const std::lock_guard lock(mutex);
        right += good;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  CHECK(right == 120);
}

TEST_CASE("a newer export is loaded, a damaged one is refused with one warning") {
  const test::TempFolder folder;
  const std::string e = folder / "e";
  test::export_sample(e, 1);
  RunningServer server(e, {.worker = {.poll = 20ms}});
  const std::string body = R"({"instances": ["good fun"]})";
  const std::string first = server.post(predict, body).body;
  test::export_sample(e, 5);
  REQUIRE(server.serves(2));
  const std::string second = server.post(predict, body).body;
  CHECK(second != first);
  CHECK(json_of(server.get("/v1/models/imdb"))["model_version_status"][0]["version"] == "2");

  std::filesystem::copy(e + "/000002", e + "/000003", std::filesystem::copy_options::recursive);
  const std::string weights = test::read_file(e + "/000003/weights.safetensors");
  // It is refused now if it was not read completely before.
  test::write_file(e + "/000004", "not a folder");
  std::filesystem::create_directory(e + "/000005");
  test::write_file(e + "/000005/export.json", "{}");
  CHECK(server.serves(3));
  CHECK(server.warns(1));
  CHECK(server.post(predict, body).body == second);
  REQUIRE(server.warnings().size() == 1);
  CHECK_THAT(server.warnings()[0], Contains("version 5 is refused") && Contains("export.json"));
}

TEST_CASE("a version that is completed later, or removed, is noticed") {
  const test::TempFolder folder;
  const std::string e = folder / "e";
  test::export_sample(e, 1);
  test::export_sample(e, 5);
  const std::string weights = test::read_file(e + "/000002/weights.safetensors");
  test::write_file(e + "/000002/weights.safetensors", weights.substr(0, 50));
  RunningServer server(e, {.worker = {.poll = 20ms}});
  CHECK(server.version() == 1);
  test::write_file(e + "/000002/weights.safetensors", weights);
  CHECK(server.serves(2));
  std::filesystem::rename(e + "/000002", folder / "away");
  CHECK(server.serves(1));
  CHECK(server.warnings().size() == 1);
}

TEST_CASE("a server without a loadable export does not start") {
  const test::TempFolder folder;
  CHECK_THROWS_AS(ModelServer(folder / "none", {}), FileError);
  test::export_sample(folder / "e");
  std::filesystem::remove(folder / "e/000001/weights.safetensors");
  std::vector<std::string> warnings;
  ModelServerOptions options;
  options.worker.warn = [&](const std::string& line) { warnings.push_back(line); };
  CHECK_THROWS_AS(ModelServer(folder / "e", options), FileError);
  test::export_sample(folder / "f");
  RunningServer one(folder / "f/000001");
  CHECK(one.version() == 1);
}

}  // namespace model_server_test
