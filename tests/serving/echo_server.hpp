#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tessera/framework/serving/http/http_server.hpp>
#include <tessera/framework/serving/http/predict_reply.hpp>

namespace tessera::test {

using namespace detail;

/// Answers with the body: at once at /echo, from another thread at /slow, with an exception at
/// /throw, never at /never, when the request is abandoned at /wait.
class EchoHandler : public HttpHandler {
 public:
  ~EchoHandler() override {
    for (std::thread& thread : threads_) thread.join();
  }
  std::optional<HttpResponse> refuse(const std::string& method,
                                     const std::string& target) override {
    if (target != "/echo" && target != "/slow" && target != "/throw" && target != "/never" &&
        target != "/wait") {
      return HttpResponse{404, error_reply("no such path"), ""};
    }
    if (method == "POST" || method == "GET") return std::nullopt;
    return HttpResponse{405, error_reply("no such method"), "POST"};
  }
  void handle(HttpRequest&& request, HttpRespond respond) override {
    if (request.target == "/throw") throw std::runtime_error("thrown");
    if (request.target == "/never") return;
    if (request.target == "/wait") {
      callbacks_.push_back(std::make_unique<Callback>(request.abandoned, [this, respond] {
        ++abandoned_;
        respond(abandoned_response());
      }));
      ++waiting_;
      return;
    }
    if (request.target == "/echo") return respond({.body = std::move(request.body)});
    threads_.emplace_back([body = std::move(request.body), respond = std::move(respond)] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      respond({.body = body});
    });
  }

  /// Returns the number of requests at /wait so far, and of those that were abandoned.
  int waiting() const { return waiting_; }
  int abandoned() const { return abandoned_; }

 private:
  using Callback = std::stop_callback<std::function<void()>>;

  std::vector<std::thread> threads_;
  std::vector<std::unique_ptr<Callback>> callbacks_;
  std::atomic<int> waiting_{0}, abandoned_{0};
};

/// A server with an EchoHandler that runs on its own thread.
class EchoServer {
 public:
  explicit EchoServer(const HttpServerOptions& options = {})
      : handler_(std::make_unique<EchoHandler>()),
        server_(options, *handler_),
        thread_([this] { server_.run(); }) {}
  ~EchoServer() {
    stop();
    join();
    // The handler's threads still use the server.
    handler_.reset();
  }
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  int port() const { return server_.port(); }
  const EchoHandler& handler() const { return *handler_; }
  void stop() { server_.stop(); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::unique_ptr<EchoHandler> handler_;
  HttpServer server_;
  std::thread thread_;
};

}  // namespace tessera::test
