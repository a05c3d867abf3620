#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <tessera/framework/serving/model_handler.hpp>

#include "apps/gpt/generator.hpp"

namespace tessera::gpt {

/// Limits of requests.
struct TextLimits {
  int64_t texts = 16;      ///< maximum number of texts per request
  int64_t words = 1000;    ///< maximum number of words to add to each
  int64_t waiting = 1024;  ///< maximum number of waiting requests; more get status 503
  /// Maximum number of requests whose words are generated in turn, half of them of one client; each
  /// has a key-value cache.
  int64_t active = 16;
  /// Maximum number of words of a request, added to all of its texts; 0: 16000, or `words` if that
  /// is more.
  int64_t request_words = 0;
  /// Maximum number of words of a client's unfinished requests; more get status 429. 0: 4 times
  /// that of a request.
  int64_t client_words = 0;

  int64_t max_request_words() const;
  int64_t max_client_words() const;
};

/// Prompts and how to continue them.
struct TextRequest {
  std::vector<std::string> texts;
  Sampling sampling;

  /// Returns the number of words to add.
  int64_t words() const { return std::ssize(texts) * sampling.words; }
};

/// Parses {"instances": ["a text", …]} with optional keys "words", "top_k", "temperature" and
/// "seed", whose defaults are `defaults`. Throws detail::RequestError, ConfigError.
TextRequest parse_text_request(const std::string& body, const Sampling& defaults,
                               const TextLimits& limits);

/// Continues texts, behind a ModelServer:
///
///     POST /v1/models/NAME:predict  {"instances": ["this movie is"], "words": 20}
///       ->  {"predictions": ["this movie is …"]}
///     GET  /v1/models/NAME, /healthz
///
/// A text depends on its request only. One thread adds a word to each request in turn, so a short
/// request does not wait for a long one. A request whose client has hung up is dropped before its
/// next word.
class TextHandler final : public detail::ModelHandler {
 public:
  /// The generator must outlive the handler.
  TextHandler(const Generator& generator, const Sampling& defaults, const TextLimits& limits);

  void predict(detail::HttpRequest&& request, std::optional<int64_t> version,
               detail::HttpRespond respond) override;
  detail::HttpResponse describe(const detail::ModelRoute& route,
                                const detail::HttpRequest& request) const override;
  /// Returns the number of requests without a response. Thread-safe.
  int64_t unfinished() const;

 private:
  struct Job {
    TextRequest request;
    std::string client;
    std::stop_token abandoned;
    detail::HttpRespond respond;
    std::vector<std::string> finished = {};              ///< the first texts, continued
    std::optional<Generator::Text> text = std::nullopt;  ///< the next one, once begun
  };

  void work(const std::stop_token& stop);
  /// Queues a request, or returns the response to one beyond the limits.
  std::optional<detail::HttpResponse> queue(Job& job);
  /// Moves waiting requests to those in turn, while there is room. Waits for one if none is in
  /// turn. Returns whether any is, false if `stop` is requested.
  bool admit(std::list<Job>& in_turn, const std::stop_token& stop);
  /// Removes the waiting requests that were abandoned. Called under the lock.
  void drop_abandoned();
  std::optional<detail::HttpResponse> add_word(Job& job) const;
  void finish(const Job& job, const detail::HttpResponse& response);
  void forget(const Job& job);

  const Generator& generator_;
  Sampling defaults_;
  TextLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::list<Job> waiting_;
  int64_t unfinished_ = 0;
  std::map<std::string, int64_t> words_of_;  ///< by client: the words of its unfinished requests
  std::jthread thread_;
};

}  // namespace tessera::gpt
