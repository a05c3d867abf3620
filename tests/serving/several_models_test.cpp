// Tests of a server with several models.
#include <tessera/framework/serving/model_server.hpp>

#include <chrono>
#include <thread>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>

#include "tests/serving/within_a_minute.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/sample_export.hpp"

namespace several_models_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using namespace std::chrono_literals;
using test::HttpAnswer;

namespace {

const std::string reviews = R"({"instances": ["good fun"]})";
const std::string numbers = R"({"instances": [[1, 2, 3]]})";

/// Exports a model of three numbers, which answers with `factor` times their sum.
void export_sum(const std::string& folder, double factor = 1) {
  const Sequential model({Dense(1, {.kernel_initializer = Constant(factor), .name = "sum"})});
  model.build({-1, 3});
  export_model(model, folder, {.sample = at::ones({1, 3})});
}

/// A server of "reviews" and "sum" that runs on its own thread.
class TwoModels {
 public:
  explicit TwoModels(const test::TempFolder& folder, const ModelWorkerOptions& worker = {})
      : server_({{"reviews", folder / "reviews"}, {"sum", folder / "sum"}}, {.worker = worker}),
        thread_([this] { server_.run(); }) {}
  ~TwoModels() {
    server_.stop();
    join();
  }
  TwoModels(const TwoModels&) = delete;
  TwoModels& operator=(const TwoModels&) = delete;

  HttpAnswer get(const std::string& target) const {
    return test::http_get(server_.port(), "/v1/models/" + target);
  }
  HttpAnswer post(const std::string& target, const std::string& body) const {
    return test::http_post(server_.port(), "/v1/models/" + target, body);
  }
  const ModelServer& server() const { return server_; }
  void stop() { server_.stop(); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  ModelServer server_;
  std::thread thread_;
};

Json json_of(const HttpAnswer& answer) { return parse_json(answer.body, "answer"); }

}  // namespace

TEST_CASE("each of two models answers the requests for it") {
  const test::TempFolder folder;
  test::export_sample(folder / "reviews");
  export_sum(folder / "sum");
  const TwoModels models(folder);
  CHECK(json_of(models.post("sum:predict", numbers))["predictions"].dump() == "[[6]]");
  CHECK(json_of(models.post("reviews:predict", reviews)).contains("labels"));
  CHECK(models.post("sum:predict", reviews).status == 400);
  CHECK(models.post("sum/versions/1:predict", numbers).status == 200);
  CHECK(json_of(models.get("sum/metadata"))["model_spec"]["name"] == "sum");
  CHECK(models.server().served("reviews")->takes_text);
  CHECK_FALSE(models.server().served("sum")->takes_text);
  CHECK(models.server().served()->takes_text);
  CHECK(models.server().records("sum").answered == 2);
  CHECK(models.server().records("reviews").answered == 1);
  CHECK(test::http_get(models.server().port(), "/healthz").status == 200);
}

TEST_CASE("a model that is not served is refused with the list of those that are") {
  const test::TempFolder folder;
  test::export_sample(folder / "reviews");
  export_sum(folder / "sum");
  const TwoModels models(folder);
  for (const char* target : {"other", "sums", "su", "other/metadata", "other/versions/1"}) {
    CAPTURE(target);
    const HttpAnswer answer = models.get(target);
    CHECK(answer.status == 404);
    CHECK_THAT(json_of(answer)["error"].get<std::string>(),
               Contains(R"(To fix: use one of "reviews", "sum".)"));
  }
  CHECK(models.post("other:predict", numbers).status == 404);
  CHECK_THROWS_WITH(models.server().served("sums"), Contains(R"(write "sum")"));
  CHECK_THROWS_AS(models.server().records("other"), ConfigError);
}

TEST_CASE("the versions of two models change independently") {
  const test::TempFolder folder;
  test::export_sample(folder / "reviews");
  export_sum(folder / "sum");
  const TwoModels models(folder, {.poll = 20ms});
  const std::string before = models.post("reviews:predict", reviews).body;
  export_sum(folder / "sum", 2);
  REQUIRE(test::within_a_minute([&] { return models.server().served("sum")->version == 2; }));
  CHECK(json_of(models.post("sum:predict", numbers))["predictions"].dump() == "[[12]]");
  CHECK(models.post("sum/versions/1:predict", numbers).status == 404);
  CHECK(models.server().served("reviews")->version == 1);
  CHECK(models.post("reviews:predict", reviews).body == before);
}

TEST_CASE("requests for both models that wait are answered when the server drains") {
  const test::TempFolder folder;
  test::export_sample(folder / "reviews");
  export_sum(folder / "sum");
  TwoModels models(folder, {.batch_window = 20s});
  int of_reviews = 0, of_sum = 0;
  std::thread first([&] { of_reviews = models.post("reviews:predict", reviews).status; });
  std::thread second([&] { of_sum = models.post("sum:predict", numbers).status; });
  std::this_thread::sleep_for(500ms);
  const auto begin = std::chrono::steady_clock::now();
  models.stop();
  first.join();
  second.join();
  models.join();
  CHECK(of_reviews == 200);
  CHECK(of_sum == 200);
  CHECK(std::chrono::steady_clock::now() - begin < 10s);
}

TEST_CASE("a server of several models needs models with names of their own") {
  const test::TempFolder folder;
  export_sum(folder / "sum");
  const std::vector<NamedExport> none;
  CHECK_THROWS_WITH(ModelServer(none, {}), Contains("at least one model"));
  const std::vector<NamedExport> same{{"a", folder / "sum"}, {"a", folder / "sum"}};
  CHECK_THROWS_WITH(ModelServer(same, {}), Contains("must differ") && Contains("\"a\""));
  const auto start = [] { const ModelServer server({{"a", "none"}, {"b", "none"}}, {}); };
  CHECK_THROWS_AS(start(), FileError);
}

}  // namespace several_models_test
