#include <tessera/framework/serving/model_server.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <set>
#include <thread>

#include <tessera/framework/base/json.hpp>

#include "tests/serving/running_server.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/sample_export.hpp"

namespace model_server_load_test {

using namespace tessera;
using namespace tessera::detail;
using namespace std::chrono_literals;
using test::HttpAnswer;
using test::HttpClient;
using test::RunningServer;

namespace {

using Clock = std::chrono::steady_clock;

const std::string predict = "/v1/models/imdb:predict";
// Each request repeats one text three times, so that an answer from two versions would show.
const std::string good_body = R"({"instances": ["good fun", "good fun", "good fun"]})";

/// Clients that send requests in a loop, every tenth one invalid, and count the answers.
class Load {
 public:
  Load(int port, int clients) : port_(port) {
    for (int c = 0; c < clients; ++c) threads_.emplace_back([this, c] { ask(c); });
  }
  ~Load() { finish(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  void finish() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  /// The 99th percentile of the good requests' latency, in milliseconds.
  double p99() {
    const std::lock_guard lock(mutex_);
    std::sort(times_.begin(), times_.end());
    return times_.empty() ? 0 : times_[times_.size() * 99 / 100];
  }
  int64_t good() const { return good_; }
  int64_t bad() const { return bad_; }
  int64_t dropped() const { return dropped_; }
  int64_t wrong() const { return wrong_; }
  std::set<std::string> answers() const {
    const std::lock_guard lock(mutex_);
    return answers_;
  }
  /// Whether there are so many different answers, or good ones, within a minute.
  bool sees(size_t count) const {
    return test::within_a_minute([&] { return answers().size() >= count; });
  }
  bool sees_good(int64_t count) const {
    return test::within_a_minute([&] { return good_ >= count && bad_ > 20; });
  }

 private:
  void ask(int c) {
    try {
      auto client = std::make_unique<HttpClient>(port_);
      for (int i = c; !stop_; ++i) {
        const bool bad = i % 10 == 0;
        const auto begin = Clock::now();
        const HttpAnswer answer = client->post(predict, bad ? "{\"instances\": [" : good_body);
        const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
        count(answer, bad, took.count());
        if (!answer.keeps_open) client = std::make_unique<HttpClient>(port_);
      }
    } catch (const std::runtime_error&) {
      // The server accepts no more connections: it drains.
    }
  }

  void count(const HttpAnswer& answer, bool bad, double took) {
    const std::lock_guard lock(mutex_);
    if (answer.status == 0) {
      ++dropped_;
    } else if (bad) {
      answer.status == 400 ? ++bad_ : ++wrong_;
    } else if (answer.status == 200 && is_of_one_version(answer.body)) {
      ++good_;
      times_.push_back(took);
      answers_.insert(answer.body);
    } else {
      ++wrong_;
    }
  }

  static bool is_of_one_version(const std::string& body) {
    const Json rows = parse_json(body, "answer")["predictions"];
    return rows.size() == 3 && rows[0] == rows[1] && rows[1] == rows[2];
  }

  int port_;
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  std::atomic<int64_t> good_ = 0, bad_ = 0, dropped_ = 0, wrong_ = 0;
  std::vector<double> times_;
  std::set<std::string> answers_;
  std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("versions change under load without a wrong answer, and draining drops none") {
  const test::TempFolder folder;
  const std::string e = folder / "e";
  test::export_sample(e, 1);
  RunningServer server(e, {.worker = {.batch_window = 1ms, .poll = 20ms}});
  Load load(server.port(), 6);
  CHECK(load.sees(1));
  test::export_sample(e, 5);
  CHECK(server.serves(2));
  CHECK(load.sees(2));
  std::filesystem::create_directory(e + "/000003");
  test::write_file(e + "/000003/export.json", "{\"format\": ");
  CHECK(server.warns(1));
  test::export_sample(e, 9);
  CHECK(server.serves(4));
  CHECK(load.sees(3));
  CHECK(load.sees_good(201));
  const auto begin = Clock::now();
  server.stop();
  server.join();
  CHECK(Clock::now() - begin < 5s);
  load.finish();
  CHECK(load.dropped() == 0);
  CHECK(load.wrong() == 0);
  CHECK(load.good() > 200);
  CHECK(load.bad() > 20);
  CHECK(load.answers().size() == 3);
  CHECK(server.warnings().size() == 1);
}

TEST_CASE("two hundred slow clients do not delay a good one") {
  const test::TempFolder folder;
  test::export_sample(folder / "e", 1);
  RunningServer server(folder / "e");
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (int i = 0; i < 200; ++i) {
    slow.push_back(std::make_unique<HttpClient>(server.port()));
    slow.back()->send(test::post_bytes(predict, good_body).substr(0, 40 + i / 4));
  }
  std::atomic<bool> stop = false;
  std::thread dripping([&] {
    while (!stop) {
      for (const auto& client : slow) client->send("x");
      std::this_thread::sleep_for(200ms);
    }
  });
  Load load(server.port(), 1);
  std::this_thread::sleep_for(1s);
  load.finish();
  stop = true;
  dripping.join();
  CHECK(load.wrong() + load.dropped() == 0);
  CHECK(load.good() > 20);
  // A request behind a slow client would wait for its timeout, of seconds.
  CHECK(load.p99() < 1000);
}

}  // namespace model_server_load_test
