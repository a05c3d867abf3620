#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <tessera/framework/serving/http/http_server.hpp>

#include "apps/gpt/generator.hpp"

namespace tessera::gpt {

/// What a request may ask for at most.
struct TextLimits {
  int64_t texts = 16;
  int64_t words = 1000;    ///< to add to each
  int64_t waiting = 1024;  ///< requests; more are answered with status 503
};

/// Texts to go on with, and how.
struct TextRequest {
  std::vector<std::string> texts;
  Sampling sampling;
};

/// Reads {"instances": ["a text", …]}, beside which "words", "top_k", "temperature" and "seed" may
/// stand; what is absent is as in `defaults`. Throws detail::RequestError, ConfigError.
TextRequest parse_text_request(const std::string& body, const Sampling& defaults,
                               const TextLimits& limits);

/// Goes on with texts over HTTP:
///
///     POST /v1/models/NAME:predict  {"instances": ["this movie is"], "words": 20}
///       ->  {"predictions": ["this movie is …"]}
///     GET  /v1/models/NAME, /healthz
///
/// A text follows from the request alone. One thread answers, in the order of requests.
class TextServer final : private detail::HttpHandler {
 public:
  /// Listens. The generator outlives the server. Throws ConfigError, FileError.
  TextServer(const Generator& generator, const std::string& name, const Sampling& defaults,
             const TextLimits& limits, const detail::HttpServerOptions& http);

  int port() const { return server_.port(); }
  /// Serves until a signal.
  void run() { server_.run(); }

 private:
  struct Job {
    TextRequest request;
    detail::HttpRespond respond;
  };

  std::optional<detail::HttpResponse> refuse(const std::string& method,
                                             const std::string& target) override;
  void handle(detail::HttpRequest&& request, detail::HttpRespond respond) override;
  void work(const std::stop_token& stop);
  std::optional<Job> next_job(const std::stop_token& stop);
  detail::HttpResponse answer(const TextRequest& request, const std::stop_token& stop) const;

  const Generator& generator_;
  std::string name_;
  Sampling defaults_;
  TextLimits limits_;
  detail::HttpServer server_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Job> waiting_;
  std::jthread thread_;  ///< ends before the server, whose answers it gives
};

}  // namespace tessera::gpt
