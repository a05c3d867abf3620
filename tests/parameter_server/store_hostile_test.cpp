// Untrusted messages to a parameter server: it refuses them in one line and continues.
#include <atomic>
#include <functional>
#include <limits>
#include <thread>

#include <ATen/ATen.h>

#include "tests/parameter_server/rpc_target.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/http_client.hpp"

namespace store_hostile_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::strategy;
using namespace tessera::test;

namespace {

/// Streams, each of which is invalid in one way.
std::vector<std::pair<std::string, RpcTarget::Messages>> wrong_streams() {
  std::vector<std::pair<std::string, RpcTarget::Messages>> all;
  const auto one = [&](const std::string& name, int64_t bytes,
                       const std::function<void(rpc::Pieces&)>& fill) {
    rpc::Pieces message;
    *message.mutable_head() = head(bytes);
    fill(message);
    all.push_back({name, {message}});
  };
  constexpr auto max = std::numeric_limits<int64_t>::max();
  one("a gap", 15, [](auto& m) { add(m, 0, 0, 0, 8), add(m, 0, 0, 9, 7); });
  one("an overlap", 17, [](auto& m) { add(m, 0, 0, 0, 8), add(m, 0, 0, 7, 9); });
  one("too little", 8, [](auto& m) { add(m, 0, 0, 0, 8); });
  one("too much", 17, [](auto& m) { add(m, 0, 0, 0, 17); });
  one("far too much", 1 << 22, [](auto& m) { add(m, 0, 0, 0, 1 << 22); });
  one("a middle", 8, [](auto& m) { add(m, 0, 0, 8, 8); });
  one("a negative offset", 16, [](auto& m) { add(m, 0, 0, -16, 16); });
  one("a huge offset", 16, [](auto& m) { add(m, 0, 0, max, 16); });
  one("a negative part", 16, [](auto& m) { add(m, -1, 0, 0, 16); });
  one("no such part", 16, [](auto& m) { add(m, 2, 0, 0, 16); });
  one("a kind far below", 16, [](auto& m) { add(m, 0, -2, 0, 16); });
  one("no such kind", 16, [](auto& m) { add(m, 0, 1, 0, 16); });
  one("twice", 32, [](auto& m) { add(m, 0, 0, 0, 16), add(m, 0, 0, 0, 16); });
  one("woven", 24, [](auto& m) { add(m, 0, 0, 0, 8), add(m, 1, -1, 0, 8), add(m, 0, 0, 8, 8); });
  one("an empty piece", 16, [](auto& m) { add(m, 0, 0, 0, 0), add(m, 0, 0, 0, 16); });
  one("other bytes than told", 15, [](auto& m) { add(m, 0, 0, 0, 16); });
  one("bytes told but none sent", 16, [](auto&) {});
  one("negative bytes", -16, [](auto& m) { add(m, 0, 0, 0, 16); });
  one("no such group", 16, [](auto& m) { m.mutable_head()->set_group(7), add(m, 0, 0, 0, 16); });
  one("group -1", 16, [](auto& m) { m.mutable_head()->set_group(-1), add(m, 0, 0, 0, 16); });
  one("negative numbers", 16, [](auto& m) {
    m.mutable_head()->mutable_push()->set_number(-1);
    m.mutable_head()->mutable_state()->set_steps(-2);
    add(m, 0, 0, 0, 16);
  });
  rpc::Pieces headless = good_push();
  headless.clear_head();
  all.push_back({"no head", {headless}});
  all.push_back({"two heads", {good_push(), good_push()}});
  rpc::Pieces half = good_push();
  half.mutable_pieces(0)->set_data(std::string(8, 'x'));
  all.push_back({"an empty message", {half, rpc::Pieces()}});
  all.push_back({"nothing", {}});
  return all;
}

}  // namespace

TEST_CASE("invalid streams are refused in one line and change nothing") {
  RpcTarget target;
  for (const auto& [name, messages] : wrong_streams()) {
    INFO(name);
    check_line(target.push(messages), grpc::StatusCode::INVALID_ARGUMENT);
    check_line(target.assign(messages), grpc::StatusCode::INVALID_ARGUMENT);
  }
  CHECK(target.state().version() == 1);
  CHECK(target.push({good_push()}).ok());
  CHECK(target.state().updates() == 1);
}

TEST_CASE("calls of another job, or for unknown parts, are refused") {
  RpcTarget target(300ms);
  rpc::Pieces other = good_push();
  other.mutable_head()->set_job("\n\xff other");
  check_line(target.push({other}), grpc::StatusCode::FAILED_PRECONDITION);
  check_line(target.assign({other}), grpc::StatusCode::FAILED_PRECONDITION);
  const auto define = [&](int group, const std::string& job) {
    grpc::ClientContext context;
    RpcTarget::limit(context);
    rpc::DefineRequest request;
    request.set_job(job);
    request.set_group(group);
    request.set_parts("\xff\n\n; ; ");
    rpc::DefineReply reply;
    return target.stub->Define(&context, request, &reply);
  };
  check_line(define(0, "job"), grpc::StatusCode::FAILED_PRECONDITION);
  check_line(define(0, ""), grpc::StatusCode::FAILED_PRECONDITION);
  check_line(define(-5, "job"), grpc::StatusCode::FAILED_PRECONDITION);
  const auto pull = [&](int group, const std::string& job) {
    grpc::ClientContext context;
    RpcTarget::limit(context);
    rpc::PullRequest request;
    request.set_job(job);
    request.set_group(group);
    const auto reader = target.stub->Pull(&context, request);
    rpc::Pieces message;
    while (reader->Read(&message)) {
    }
    return reader->Finish();
  };
  check_line(pull(1, "job"), grpc::StatusCode::INVALID_ARGUMENT);
  check_line(pull(0, "x"), grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(pull(0, "job").ok());
}

TEST_CASE("messages that are too large are refused") {
  RpcTarget target;
  rpc::Pieces large;
  *large.mutable_head() = head(65 << 20);
  add(large, 0, 0, 0, 65 << 20);
  check_line(target.push({large}), grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(target.state().version() == 1);
}

TEST_CASE("streams that end early or never change nothing") {
  RpcTarget target(300ms);
  // Never: the server waits at most its patience.
  CHECK(target.push({good_push()}, false).error_code() == grpc::StatusCode::CANCELLED);
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    rpc::PushReply reply;
    const auto writer = target.stub->Push(&context, &reply);
    writer->Write(good_push());
    context.TryCancel();
    CHECK_FALSE(writer->Finish().ok());
  }
  CHECK(target.state().version() == 1);
  CHECK(target.push({good_push()}).ok());
}

TEST_CASE("a pull that nobody reads is aborted") {
  VariableGroup large;
  large.variables = {placed("large", at::zeros({64 << 20}, at::kByte), false)};
  large.plan = plan_parts(large.variables, {}, 1);
  StoreServer server(0, large, 300ms);
  const auto stub = rpc::Parameters::NewStub(server.channel());
  grpc::ClientContext context;
  RpcTarget::limit(context);
  rpc::PullRequest request;
  request.set_job("job");
  const auto reader = stub->Pull(&context, request);
  rpc::Pieces message;
  REQUIRE(reader->Read(&message));
  // An update writes elsewhere, so that only this tensor and the pull hold the previous values.
  const at::Tensor held = server.store.pull(0, 0, false).second[0].tensor;
  server.store.push(0, {1, 0, 0}, false, {{0, -1, at::ones({64 << 20}, at::kByte)}});
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (held.use_count() > 1 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(10ms);
  }
  CHECK(held.use_count() == 1);
  while (reader->Read(&message)) {
  }
  CHECK(reader->Finish().error_code() == grpc::StatusCode::CANCELLED);
}

TEST_CASE("bytes that are no gRPC are refused") {
  RpcTarget target;
  const int port = target.server.port;
  std::string garbage;
  for (int i = 0; i < 100000; ++i) garbage += static_cast<char>((i * 7919) >> 3);
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  const std::vector<std::string> sent = {
      garbage,
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      post_bytes("/", garbage),
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + garbage.substr(0, 500),
      preface + garbage,
      preface + std::string(100, '\0'),
      preface.substr(0, 10),
      ""};
  // Some connections stay open, with half a message sent.
  std::vector<std::unique_ptr<HttpClient>> open;
  for (int round = 0; round < 5; ++round) {
    for (const std::string& bytes : sent) {
      open.push_back(std::make_unique<HttpClient>(port));
      open.back()->send(bytes);
      if (round % 2 == 0) open.back()->finish();
    }
  }
  CHECK(target.state().version() == 1);
  open.clear();
  CHECK(target.push({good_push()}).ok());
}

TEST_CASE("ten thousand successive calls are answered") {
  RpcTarget target;
  std::atomic<int> answered = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 2500; ++i) {
          rpc::Pieces message = good_push();
          message.mutable_head()->mutable_push()->set_closure(1 + t * 2500 + i);
          if (i % 2 == 0) message.mutable_pieces(0)->set_offset(1);
          if (target.push({message}).ok() == (i % 2 != 0)) ++answered;
        }
      });
    }
  }
  CHECK(answered == 10000);
  CHECK(target.state().updates() == 5000);
}

}  // namespace store_hostile_test
