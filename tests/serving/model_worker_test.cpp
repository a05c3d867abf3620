#include <tessera/framework/serving/internal/model_worker.hpp>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include <ATen/ATen.h>

#include "tests/serving/running_server.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/sample_export.hpp"

namespace model_worker_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using namespace std::chrono_literals;
using test::HttpClient;
using test::RunningServer;

namespace {

const std::string predict = "/v1/models/imdb:predict";
const std::string body = R"({"instances": ["good fun"]})";

/// Blocks the creation of a layer "Gated" from a configuration while it is closed.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool closed = false;
  bool reached = false;

  void pass() {
    std::unique_lock lock(mutex);
    reached = reached || closed;
    changed.notify_all();
    changed.wait(lock, [this] { return !closed; });
  }
  bool wait_until_reached() {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 20s, [this] { return reached; });
  }
  void set_closed(bool value) {
    const std::lock_guard lock(mutex);
    closed = value;
    changed.notify_all();
  }
};

Gate gate;

class GatedLayer final : public Layer {
 public:
  using Layer::Layer;
  std::string class_name() const override { return "Gated"; }
  Shape output_shape(const Shapes& inputs) const override { return inputs[0]; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override { return inputs[0]; }
};

/// Waits until there are `count` warnings; returns false after 5 s.
bool warned(const RunningServer& server, size_t count) {
  for (int i = 0; i < 500 && server.warnings().size() < count; ++i) {
    std::this_thread::sleep_for(10ms);
  }
  return server.warnings().size() == count;
}

/// Exports a model whose rows are as wide as their longest text.
void export_of_words(const std::string& path) {
  const TextVectorization words({.vocabulary = {"a", "b", "c"}});
  const Sequential model({Embedding(5, 2), GlobalAveragePooling1D(), Dense(1)});
  model.build({-1, -1});
  export_model(
      model, path,
      {.text = std::dynamic_pointer_cast<TextLayer>(words.layer()), .sample = {"a b", "c"}});
}

/// The answers to requests that are numbered in the order of submission.
class Answers {
 public:
  void submit(ModelWorker& worker, const std::string& text) {
    const size_t number = add();
    worker.submit(parse_predict_request(text), std::nullopt,
                  [this, number](const HttpResponse& response) {
                    const std::lock_guard lock(mutex_);
                    answers_[number] = response;
                    ++count_;
                    changed_.notify_all();
                  });
  }
  /// Waits until all are answered, at most 20 s.
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [this] { return count_ == answers_.size(); });
  }
  const HttpResponse& operator[](size_t number) const { return answers_[number]; }

 private:
  size_t add() {
    const std::lock_guard lock(mutex_);
    answers_.emplace_back();
    return answers_.size() - 1;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<HttpResponse> answers_;
  size_t count_ = 0;
};

/// Exports a model that adds up two numbers.
void export_of_sums(const std::string& path) {
  const Sequential model({Dense(1, {.kernel_initializer = "ones"})});
  model.build({-1, 2});
  export_model(model, path, {.sample = at::ones({1, 2})});
}

}  // namespace

TEST_CASE("requests that wait share calls of the model, of a power of two of rows") {
  const test::TempFolder folder;
  export_of_sums(folder / "e");
  Answers answers;
  ModelWorker worker(folder / "e", {.batch_window = 20s});
  for (int i = 0; i < 13; ++i) {
    answers.submit(worker, str("{\"instances\": [[", i, ", 1]]}"));
  }
  worker.hurry();
  REQUIRE(answers.wait());
  for (size_t i = 0; i < 13; ++i) {
    CHECK_THAT(answers[i].body, Contains(str("{\"predictions\": [[", i + 1)));
  }
  // 8, 4 and 1.
  CHECK(worker.records().calls == 3);
  CHECK(worker.records().answered == 13);
}

TEST_CASE("requests of several rows share a call, too") {
  const test::TempFolder folder;
  export_of_sums(folder / "e");
  Answers answers;
  ModelWorker worker(folder / "e", {.max_batch = 8, .batch_window = 20s});
  for (int i = 0; i < 3; ++i) answers.submit(worker, "{\"instances\": [[1, 1], [1, 2], [1, 3]]}");
  worker.hurry();
  REQUIRE(answers.wait());
  for (size_t i = 0; i < 3; ++i) {
    CHECK(parse_json(answers[i].body, "answer").at("predictions") == Json::array({{2}, {3}, {4}}));
  }
  // Six rows, no prefix of which is a power of two, then the three that would exceed max_batch.
  CHECK(worker.records().calls == 2);
}

TEST_CASE("a request whose predictions are not finite fails without the others") {
  const test::TempFolder folder;
  export_of_sums(folder / "e");
  Answers answers;
  ModelWorker worker(folder / "e", {.batch_window = 20s});
  for (const char* row : {"[1, 1]", "[3e38, 3e38]", "[2, 2]", "[3, 3]"}) {
    answers.submit(worker, str("{\"instances\": [", row, "]}"));
  }
  worker.hurry();
  REQUIRE(answers.wait());
  for (const size_t good : {0, 2, 3}) CHECK(answers[good].status == 200);
  CHECK(answers[1].status == 400);
  CHECK_THAT(answers[1].body, Contains("send smaller numbers"));
  // All together, and the second on its own.
  CHECK(worker.records().calls == 2);
  CHECK(worker.records().answered == 3);
}

TEST_CASE("calls of a served model are replayed") {
  const test::TempFolder folder;
  export_of_sums(folder / "e");
  const auto replayed = [&] {
    ModelWorker worker(folder / "e", {});
    for (int i = 0; i < 5; ++i) {
      Answers answers;
      answers.submit(worker, "{\"instances\": [[1, 2]]}");
      REQUIRE(answers.wait());
      CHECK_THAT(answers[0].body, Contains("[[3]]"));
    }
    CHECK(worker.records().calls == 5);
    return worker.records().replayed;
  };
  // The sample was the first call of its number of rows; the next one is captured.
  CHECK(replayed() == 4);
  const test::EnvironmentScope never("TESSERA_RECORD_STEPS", "never");
  CHECK(replayed() == 0);
}

TEST_CASE("a batch window longer than the drain timeout loses no request") {
  const test::TempFolder folder;
  test::export_sample(folder / "e");
  RunningServer server(folder / "e",
                       {.worker = {.batch_window = 20s}, .http = {.drain_timeout = 2000ms}});
  HttpClient waiting(server.port());
  waiting.send(test::post_bytes(predict, body));
  HttpClient late(server.port());
  const std::string bytes = test::post_bytes(predict, body);
  late.send(bytes.substr(0, bytes.size() - 1));
  std::this_thread::sleep_for(100ms);
  server.stop();
  CHECK(waiting.read().status == 200);
  // Requests that arrive during draining do not wait either.
  CHECK(late.ask(bytes.substr(bytes.size() - 1)).status == 200);
}

TEST_CASE("a stopped worker does not compute waiting requests") {
  const test::TempFolder folder;
  test::export_sample(folder / "e");
  std::mutex mutex;
  std::vector<int> statuses;
  const auto respond = [&](const HttpResponse& response) {
    const std::lock_guard lock(mutex);
    statuses.push_back(response.status);
  };
  auto worker =
      std::make_unique<ModelWorker>(folder / "e", ModelWorkerOptions{.batch_window = 20s});
  for (int i = 0; i < 3; ++i) worker->submit(parse_predict_request(body), std::nullopt, respond);
  const auto begin = std::chrono::steady_clock::now();
  worker.reset();
  CHECK(std::chrono::steady_clock::now() - begin < 5s);
  CHECK(statuses == std::vector<int>{503, 503, 503});
}

TEST_CASE("a damaged version that returns under its number is warned about again") {
  const test::TempFolder folder;
  const std::string e = folder / "e";
  test::export_sample(e);
  RunningServer server(e, {.worker = {.poll = 20ms}});
  std::filesystem::create_directory(e + "/000002");
  test::write_file(e + "/000002/export.json", "{}");
  CHECK(warned(server, 1));
  std::filesystem::rename(e + "/000002", folder / "away");
  std::this_thread::sleep_for(300ms);
  CHECK(server.warnings().size() == 1);
  std::filesystem::rename(folder / "away", e + "/000002");
  CHECK(warned(server, 2));
}

TEST_CASE("texts that would become a batch of gigabytes are refused with 413") {
  const test::TempFolder folder;
  export_of_words(folder / "e");
  RunningServer server(folder / "e", {.worker = {.max_elements = 10000}});
  const auto ask = [&](size_t short_ones, size_t long_words) {
    Json instances = Json::array();
    for (size_t i = 0; i < short_ones; ++i) instances.push_back("a");
    std::string text;
    for (size_t i = 0; i < long_words; ++i) text += "b ";
    if (long_words > 0) instances.push_back(text);
    return server.post(predict, to_json_text(Json{{"instances", instances}}, -1));
  };
  CHECK(ask(99, 100).status == 200);
  CHECK(ask(0, 9999).status == 200);
  const test::HttpAnswer answer = ask(99, 101);
  CHECK(answer.status == 413);
  CHECK_THAT(
      answer.body,
      Contains("a batch of texts becomes at most 10000 numbers. Received: (100, 101). To fix: "
               "send shorter texts, or fewer at a time"));
  CHECK(ask(255, 200000).status == 413);
  CHECK(ask(0, 10001).status == 413);
}

TEST_CASE("requests that only together exceed a batch are answered separately") {
  const test::TempFolder folder;
  export_of_words(folder / "e");
  std::mutex mutex;
  std::vector<int> statuses;
  {
    ModelWorker worker(folder / "e", {.max_elements = 200, .batch_window = 20s});
    const auto submit = [&](const std::string& text) {
      worker.submit(parse_predict_request(text), std::nullopt, [&](const HttpResponse& response) {
        const std::lock_guard lock(mutex);
        statuses.push_back(response.status);
      });
    };
    std::string many = "\"a\"", wide = "a";
    for (int i = 0; i < 99; ++i) many += ", \"a\"", wide += " a";
    submit("{\"instances\": [" + many + "]}");
    submit("{\"instances\": [\"" + wide + "\"]}");
    worker.hurry();
    for (int i = 0; i < 500; ++i) {
      std::this_thread::sleep_for(10ms);
      const std::lock_guard lock(mutex);
      if (statuses.size() == 2) break;
    }
  }
  CHECK(statuses == std::vector<int>{200, 200});
}

TEST_CASE("requests are answered while another version is loaded") {
  register_layer("Gated", [](JsonObject& config) {
    gate.pass();
    return LayerHandle(std::make_shared<GatedLayer>(take_layer_options(config)));
  });
  const auto write = [](const std::string& folder, double factor) {
    const Sequential model(
        {LayerHandle(std::make_shared<GatedLayer>(LayerOptions{})), Rescaling(factor)});
    model.build({-1, 1});
    export_model(model, folder, {.sample = at::ones({1, 1})});
  };
  const test::TempFolder folder;
  write(folder / "e", 2);
  RunningServer server(folder / "e", {.worker = {.poll = 20ms}});
  const auto ask = [&] {
    return parse_json(server.post(predict, "{\"instances\": [[3]]}").body, "answer")
        .at("predictions");
  };
  CHECK(ask() == Json::array({{6}}));
  gate.set_closed(true);
  write(folder / "e", 5);
  REQUIRE(gate.wait_until_reached());
  for (int i = 0; i < 20; ++i) CHECK(ask() == Json::array({{6}}));
  gate.set_closed(false);
  Json answer;
  for (int i = 0; i < 500 && (answer = ask()) != Json::array({{15}}); ++i) {
    std::this_thread::sleep_for(10ms);
  }
  CHECK(answer == Json::array({{15}}));
}

TEST_CASE("inputs that a model of integers refuses are named as they were sent") {
  const Sequential model({Flatten()});
  model.build({-1, 3});
  const test::TempFolder folder;
  export_model(model, folder / "e", {.sample = at::ones({1, 3}, at::kLong)});
  RunningServer server(folder / "e");
  const auto ask = [&](const std::string& row) {
    return server.post(predict, "{\"instances\": [" + row + "]}");
  };
  CHECK(ask("[1, -16777215, 16777215]").status == 200);
  CHECK(ask("[1, 2.5, 3]").status == 400);
  CHECK_THAT(ask("[1, 2.5, 3]").body, Contains("Received: a fraction"));
  CHECK(ask("[1, 16777216, 3]").status == 400);
  CHECK_THAT(ask("[1, 16777216, 3]").body, Contains("less than 2^24") && !Contains("a fraction"));
  CHECK_THAT(ask("[1, -4e9, 3]").body, Contains("less than 2^24") && !Contains("a fraction"));
}

TEST_CASE("non-finite outputs of a model with non-finite weights are its own fault, logged once") {
  const Sequential model({Embedding(4, 2, {.name = "words"})});
  model.build({-1, 1});
  Variable table = model.weights()[0];
  at::Tensor values = at::ones({4, 2});
  values[3].fill_(NAN);
  table.assign(pack(values, table.layout()));
  const test::TempFolder folder;
  export_model(model, folder / "e", {.sample = at::zeros({1, 1}, at::kLong)});
  RunningServer server(folder / "e");
  CHECK(server.post(predict, R"({"instances": [[1]]})").status == 200);
  for (int i = 0; i < 2; ++i) {
    const test::HttpAnswer answer = server.post(predict, R"({"instances": [[3]]})");
    CHECK(answer.status == 500);
    CHECK_THAT(answer.body, Contains("words/embeddings") && Contains("finite numbers"));
  }
  CHECK(server.post(predict, R"({"instances": [[1]]})").status == 200);
  REQUIRE(server.warnings().size() == 1);
  CHECK_THAT(server.warnings()[0], Contains("version 1 cannot answer: [words/embeddings]"));
}

TEST_CASE("non-finite outputs of a model with finite weights are the request's fault") {
  const Sequential model({Dense(1, {.kernel_initializer = "ones"})});
  model.build({-1, 2});
  const test::TempFolder folder;
  export_model(model, folder / "e", {.sample = at::ones({1, 2})});
  RunningServer server(folder / "e");
  const test::HttpAnswer answer = server.post(predict, R"({"instances": [[3e38, 3e38]]})");
  CHECK(answer.status == 400);
  CHECK_THAT(answer.body, Contains("send smaller numbers"));
  CHECK(server.warnings().empty());
}

TEST_CASE("an exception on the worker's thread is logged, and the next request is answered") {
  const test::TempFolder folder;
  test::export_sample(folder / "e");
  std::mutex mutex;
  std::vector<std::string> warnings;
  std::vector<int> statuses;
  {
    ModelWorker worker(folder / "e", {.warn = [&](const std::string& line) {
                         const std::lock_guard lock(mutex);
                         warnings.push_back(line);
                       }});
    // For another version: refused before the model is called.
    worker.submit(parse_predict_request(body), 7,
                  [](const HttpResponse&) { throw std::runtime_error("no way to the client"); });
    worker.submit(parse_predict_request(body), std::nullopt, [&](const HttpResponse& response) {
      const std::lock_guard lock(mutex);
      statuses.push_back(response.status);
    });
    for (int i = 0; i < 500; ++i) {
      std::this_thread::sleep_for(10ms);
      const std::lock_guard lock(mutex);
      if (!statuses.empty() && !warnings.empty()) break;
    }
  }
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Contains("no way to the client"));
  // The two may have been batched: then both failed.
  REQUIRE(statuses.size() == 1);
  CHECK((statuses[0] == 200 || statuses[0] == 500));
}

}  // namespace model_worker_test
