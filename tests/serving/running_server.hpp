#pragma once

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <tessera/framework/serving/model_server.hpp>

#include "tests/serving/within_a_minute.hpp"
#include "tests/support/http_client.hpp"

namespace tessera::test {

using namespace detail;

/// A ModelServer for "imdb" that runs on its own thread and collects its warnings.
class RunningServer {
 public:
  explicit RunningServer(const std::string& folder, ModelServerOptions options = {})
      : server_(folder, complete(options)), thread_([this] { server_.run(); }) {}
  ~RunningServer() {
    server_.stop();
    join();
  }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  int port() const { return server_.port(); }
  int64_t version() const { return server_.served()->version; }
  /// Whether the server serves this version within a minute: it tries each in a process, which is
  /// slow under a sanitizer.
  bool serves(int64_t version) const {
    return within_a_minute([&] { return this->version() == version; });
  }
  /// Whether there are so many warnings within a minute.
  bool warns(size_t count) const {
    return within_a_minute([&] { return warnings().size() >= count; });
  }
  HttpAnswer post(const std::string& target, const std::string& body) const {
    return http_post(port(), target, body);
  }
  HttpAnswer get(const std::string& target) const { return http_get(port(), target); }
  void stop() { server_.stop(); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  std::vector<std::string> warnings() const {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }

 private:
  ModelServerOptions complete(ModelServerOptions options) {
    options.name = "imdb";
    options.worker.warn = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      warnings_.push_back(line);
    };
    return options;
  }

  mutable std::mutex mutex_;
  std::vector<std::string> warnings_;
  ModelServer server_;
  std::thread thread_;
};

}  // namespace tessera::test
