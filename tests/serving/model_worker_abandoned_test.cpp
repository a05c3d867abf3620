// Tests of requests whose clients have hung up, or have received status 504.
#include <tessera/framework/serving/internal/model_worker.hpp>

#include <chrono>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>

#include "tests/serving/running_server.hpp"
#include "tests/serving/within_a_minute.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/sample_export.hpp"

namespace model_worker_abandoned_test {

using namespace tessera;
using namespace tessera::detail;
using namespace std::chrono_literals;

namespace {

/// Collects the statuses of responses by a letter for each request.
class Statuses {
 public:
  HttpRespond respond(char name) {
    return [this, name](const HttpResponse& response) {
      const std::lock_guard lock(mutex_);
      statuses_[name] = response.status;
    };
  }
  /// Returns the status of a response; 0 if there is none within a minute.
  int of(char name) {
    int status = 0;
    test::within_a_minute([&] {
      const std::lock_guard lock(mutex_);
      return (status = statuses_[name]) != 0;
    });
    return status;
  }
  size_t count() {
    const std::lock_guard lock(mutex_);
    return statuses_.size();
  }

 private:
  std::mutex mutex_;
  std::map<char, int> statuses_;
};

PredictRequest request() { return parse_predict_request(R"({"instances": ["good fun"]})"); }

}  // namespace

TEST_CASE("a request whose client hangs up while it waits is not computed") {
  const test::TempFolder folder;
  test::export_sample(folder / "e");
  Statuses statuses;
  ModelWorker worker(folder / "e", {.batch_window = 20s});
  std::stop_source client;
  worker.submit(request(), std::nullopt, statuses.respond('a'));
  worker.submit(request(), std::nullopt, statuses.respond('b'), client.get_token());
  worker.submit(request(), std::nullopt, statuses.respond('c'));
  CHECK(statuses.count() == 0);
  client.request_stop();
  worker.hurry();
  CHECK(statuses.of('a') == 200);
  CHECK(statuses.of('b') == 499);
  CHECK(statuses.of('c') == 200);
}

TEST_CASE("requests whose clients have hung up leave their room to others") {
  const test::TempFolder folder;
  test::export_sample(folder / "e");
  Statuses statuses;
  ModelWorker worker(folder / "e", {.batch_window = 20s, .max_waiting = 2});
  std::stop_source client;
  worker.submit(request(), std::nullopt, statuses.respond('a'), client.get_token());
  worker.submit(request(), std::nullopt, statuses.respond('b'));
  worker.submit(request(), std::nullopt, statuses.respond('c'));
  CHECK(statuses.of('c') == 503);
  client.request_stop();
  worker.submit(request(), std::nullopt, statuses.respond('d'));
  CHECK(statuses.of('a') == 499);
  worker.hurry();
  CHECK(statuses.of('b') == 200);
  CHECK(statuses.of('d') == 200);
}

TEST_CASE("a prediction that is not ready in time gets 504") {
  const test::TempFolder folder;
  test::export_sample(folder / "e");
  test::RunningServer server(folder / "e",
                             {.worker = {.batch_window = 20s}, .http = {.response_timeout = 50ms}});
  CHECK(server.post("/v1/models/imdb:predict", R"({"instances": ["good fun"]})").status == 504);
  CHECK(server.get("/healthz").status == 200);
}

}  // namespace model_worker_abandoned_test
