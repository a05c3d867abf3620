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

/// Limits of requests.
struct TextLimits {
  int64_t texts = 16;      ///< maximum number of texts per request
  int64_t words = 1000;    ///< maximum number of words to add to each
  int64_t waiting = 1024;  ///< maximum number of waiting requests; more get status 503
};

/// Prompts and how to continue them.
struct TextRequest {
  std::vector<std::string> texts;
  Sampling sampling;
};

/// Parses {"instances": ["a text", …]} with optional keys "words", "top_k", "temperature" and
/// "seed", whose defaults are `defaults`. Throws detail::RequestError, ConfigError.
TextRequest parse_text_request(const std::string& body, const Sampling& defaults,
                               const TextLimits& limits);

/// Continues texts over HTTP:
///
///     POST /v1/models/NAME:predict  {"instances": ["this movie is"], "words": 20}
///       ->  {"predictions": ["this movie is …"]}
///     GET  /v1/models/NAME, /healthz
///
/// A text depends on its request only. One thread answers requests in order.
class TextServer final : private detail::HttpHandler {
 public:
  /// Starts listening. The generator must outlive the server. Throws ConfigError, FileError.
  TextServer(const Generator& generator, const std::string& name, const Sampling& defaults,
             const TextLimits& limits, const HttpServerOptions& http);

  int port() const { return server_.port(); }
  /// Serves until SIGTERM or SIGINT.
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
  std::jthread thread_;  ///< destroyed before server_, whose requests it answers
};

}  // namespace tessera::gpt
