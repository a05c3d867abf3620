#include "apps/gpt/text_handler.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/serving/model_server.hpp>

#include "tests/apps/gpt_sample.hpp"
#include "tests/serving/within_a_minute.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/seed_scope.hpp"

namespace gpt_text_handler_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::gpt;
using Catch::Matchers::Contains;
using namespace std::chrono_literals;
using test::HttpAnswer;
using test::HttpClient;
using test::within_a_minute;

namespace {

const std::string predict = "/v1/models/gpt:predict";
/// A request that would take days.
constexpr int64_t endless = 1'000'000'000;

/// A TextHandler and its server on their own threads, with a model whose weights follow from a
/// seed.
class RunningTexts {
 public:
  explicit RunningTexts(TextLimits limits = {}, const HttpServerOptions& http = {}) {
    const test::SeedScope seed(11);
    ModelSize size = test::odd_gpt(true);
    size.length = 12;
    const LayoutMap layouts(create_mesh({{"batch", 1}}, virtual_cpus(1)));
    const Functional model = gpt_model(size);
    model.compile({.layouts = layouts});
    generator_ = std::make_unique<Generator>(model, test::gpt_vocabulary(size), size.length);
    limits.words = endless;
    auto texts = std::make_unique<TextHandler>(*generator_, Sampling{}, limits);
    texts_ = texts.get();
    server_ = std::make_unique<ModelServer>(std::move(texts), "gpt", http);
    thread_ = std::thread([this] { server_->run(); });
  }
  ~RunningTexts() {
    server_->stop();
    thread_.join();
  }
  RunningTexts(const RunningTexts&) = delete;
  RunningTexts& operator=(const RunningTexts&) = delete;

  const Generator& generator() const { return *generator_; }
  int port() const { return server_->port(); }
  bool has_unfinished(int64_t count) const {
    return within_a_minute([&] { return texts_->unfinished() == count; });
  }

 private:
  std::unique_ptr<Generator> generator_;
  std::unique_ptr<ModelServer> server_;
  const TextHandler* texts_ = nullptr;  ///< the server's
  std::thread thread_;
};

std::string request(const std::vector<std::string>& texts, int64_t words) {
  return test::post_bytes(predict, to_json_text({{"instances", texts}, {"words", words}}));
}

HttpAnswer ask(int port, const std::string& bytes, const std::string& from = "127.0.0.1") {
  HttpClient client(port, from);
  client.send(bytes);
  return client.read(60);
}

}  // namespace

TEST_CASE("a short request does not wait for a long one of the same client") {
  RunningTexts server;
  HttpClient long_one(server.port());
  long_one.send(request(std::vector<std::string>(16, "w9"), 1000));
  HttpClient two(server.port());
  two.send(request({"w9"}, 16000));
  REQUIRE(server.has_unfinished(2));
  for (int i = 0; i < 3; ++i) CHECK(ask(server.port(), request({"w9 w10"}, 1)).status == 200);
}

TEST_CASE("a text is the same alone and beside others") {
  RunningTexts server;
  // Before any request: the model belongs to one thread at a time.
  const Json alone = Json::array({server.generator().generate("w9 w10 w11", {.words = 20}),
                                  server.generator().generate("w5", {.words = 20})});
  HttpClient other(server.port());
  other.send(request({"w7", "w8"}, 8000));
  REQUIRE(server.has_unfinished(1));
  const HttpAnswer answer = ask(server.port(), request({"w9 w10 w11", "w5"}, 20));
  REQUIRE(answer.status == 200);
  CHECK(parse_json(answer.body, "answer").at("predictions") == alone);
}

TEST_CASE("a request is dropped when its client hangs up, in turn or waiting") {
  RunningTexts server({.active = 1, .request_words = endless});
  auto in_turn = std::make_unique<HttpClient>(server.port());
  in_turn->send(request({"w9"}, endless));
  REQUIRE(server.has_unfinished(1));
  auto waiting = std::make_unique<HttpClient>(server.port());
  waiting->send(request({"w9"}, endless));
  REQUIRE(server.has_unfinished(2));
  waiting.reset();
  REQUIRE(server.has_unfinished(1));
  in_turn.reset();
  REQUIRE(server.has_unfinished(0));
  CHECK(ask(server.port(), request({"w9"}, 1)).status == 200);
}

TEST_CASE("a client that closes its sending side only learns that it was taken for gone") {
  RunningTexts server({.request_words = endless});
  HttpClient client(server.port());
  client.send(request({"w9"}, endless));
  client.finish();
  const HttpAnswer answer = client.read(60);
  CHECK(answer.status == 499);
  CHECK_THAT(answer.body, Contains("leave it open"));
}

TEST_CASE("one client has at most half of the requests in turn") {
  RunningTexts server({.active = 2, .request_words = endless});
  auto first = std::make_unique<HttpClient>(server.port());
  first->send(request({"w9"}, endless));
  REQUIRE(server.has_unfinished(1));
  HttpClient second(server.port());
  second.send(request({"w9"}, 1));
  REQUIRE(server.has_unfinished(2));
  // Another client's request, which arrives later, is not behind them.
  CHECK(ask(server.port(), request({"w9"}, 3), "127.0.0.2").status == 200);
  CHECK(server.has_unfinished(2));
  first.reset();
  CHECK(second.read(60).status == 200);
}

TEST_CASE("the words of a request and those of a client are limited") {
  RunningTexts server({.request_words = 1'000'000, .client_words = 1'500'000});
  const HttpAnswer large = ask(server.port(), request({"w9", "w8"}, 500'001));
  CHECK(large.status == 400);
  CHECK_THAT(large.body, Contains("at most 1000000. Received: 500001 times 2. To fix: split"));
  auto first = std::make_unique<HttpClient>(server.port());
  first->send(request({"w9"}, 1'000'000));
  REQUIRE(server.has_unfinished(1));
  const HttpAnswer more = ask(server.port(), request({"w9"}, 500'001));
  CHECK(more.status == 429);
  CHECK_THAT(more.body, Contains("at most 1500000 words. Received: 500001 words beside 1000000"));
  CHECK(ask(server.port(), request({"w9"}, 2)).status == 200);
  HttpClient stranger(server.port(), "127.0.0.2");
  stranger.send(request({"w9"}, 1'000'000));
  REQUIRE(server.has_unfinished(2));
  first.reset();
  REQUIRE(server.has_unfinished(1));
  HttpClient again(server.port());
  again.send(request({"w9"}, 1'000'000));
  CHECK(server.has_unfinished(2));
}

TEST_CASE("a request that takes longer than the server allows gets 504 and is dropped") {
  RunningTexts server({.request_words = endless}, {.response_timeout = 200ms});
  const HttpAnswer answer = ask(server.port(), request({"w9"}, endless));
  CHECK(answer.status == 504);
  CHECK_THAT(answer.body, Contains("within 200 ms"));
  CHECK_FALSE(answer.keeps_open);
  CHECK(server.has_unfinished(0));
}

}  // namespace gpt_text_handler_test
