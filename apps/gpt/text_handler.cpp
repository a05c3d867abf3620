#include "apps/gpt/text_handler.hpp"

#include <algorithm>
#include <utility>

#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/serving/http/predict_request.hpp>

namespace tessera::gpt {

using namespace detail;

namespace {

[[noreturn]] void refuse_value(const std::string& key, const std::string& expected,
                               const std::string& received) {
  throw RequestError(400, "request", in_quotes(key) + " is " + expected, received, "correct it");
}

/// Returns the response to a request for a version or for metadata.
HttpResponse only_version(const HttpRequest& request) {
  return error_response(404, "[request] only one version is served, without metadata. Received: " +
                                 in_quotes(request.target) + ".");
}

}  // namespace

int64_t TextLimits::max_request_words() const {
  return request_words > 0 ? request_words : std::max<int64_t>(16000, words);
}

int64_t TextLimits::max_client_words() const {
  return client_words > 0 ? client_words : 4 * max_request_words();
}

TextRequest parse_text_request(const std::string& body, const Sampling& defaults,
                               const TextLimits& limits) {
  const Json json = parse_json(body, "request");
  JsonObject object(json, JsonPath("request"));
  TextRequest request{object.take<std::vector<std::string>>("instances"), defaults};
  Sampling& sampling = request.sampling;
  sampling.words = object.take_or("words", sampling.words);
  sampling.top_k = object.take_or("top_k", sampling.top_k);
  sampling.temperature = object.take_or("temperature", sampling.temperature);
  sampling.seed = object.take_or("seed", sampling.seed);
  object.finish();
  const auto texts = std::ssize(request.texts);
  if (texts < 1 || texts > limits.texts) {
    throw RequestError(texts < 1 ? 400 : 413, "request",
                       str("a request must have 1 to ", limits.texts, " instances"), str(texts),
                       "split them into several requests");
  }
  if (sampling.words < 1 || sampling.words > limits.words) {
    refuse_value("words", str("1 to ", limits.words), str(sampling.words));
  }
  if (request.words() > limits.max_request_words()) {
    throw RequestError(
        400, "request",
        str("\"words\" times the number of instances is at most ", limits.max_request_words()),
        str(sampling.words, " times ", texts), "split them into several requests");
  }
  if (sampling.top_k < 1) refuse_value("top_k", "at least 1", str(sampling.top_k));
  if (!(sampling.temperature > 0)) {
    refuse_value("temperature", "above 0", str(sampling.temperature));
  }
  return request;
}

TextHandler::TextHandler(const Generator& generator, const Sampling& defaults,
                         const TextLimits& limits)
    : generator_(generator),
      defaults_(defaults),
      limits_(limits),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

void TextHandler::predict(HttpRequest&& request, std::optional<int64_t> version,
                          HttpRespond respond) {
  if (version) return respond(only_version(request));
  Job job{.request = parse_text_request(request.body, defaults_, limits_),
          .client = std::move(request.client),
          .abandoned = std::move(request.abandoned),
          .respond = respond};
  if (const std::optional<HttpResponse> refused = queue(job)) return respond(*refused);
  changed_.notify_all();
}

HttpResponse TextHandler::describe(const ModelRoute& route, const HttpRequest& request) const {
  if (route.version || route.action == ModelAction::metadata) return only_version(request);
  return {.body = "{\"status\": \"ok\"}\n"};
}

std::optional<HttpResponse> TextHandler::queue(Job& job) {
  const std::lock_guard lock(mutex_);
  drop_abandoned();
  if (std::ssize(waiting_) >= limits_.waiting) {
    return error_response(
        503, str("[request] at most ", limits_.waiting, " requests wait. To fix: try again."));
  }
  int64_t& words = words_of_[job.client];
  const int64_t max_words = limits_.max_client_words();
  if (words > 0 && words + job.request.words() > max_words) {
    return error_response(
        429, str("[request] the unfinished requests of a client ask for at most ", max_words,
                 " words. Received: ", job.request.words(), " words beside ", words,
                 ". To fix: wait for the responses to some of them."));
  }
  words += job.request.words();
  ++unfinished_;
  waiting_.push_back(std::move(job));
  return std::nullopt;
}

int64_t TextHandler::unfinished() const {
  const std::lock_guard lock(mutex_);
  return unfinished_;
}

/// Gives the words of a request back to its client. Called under the lock.
void TextHandler::forget(const Job& job) {
  --unfinished_;
  const auto words = words_of_.find(job.client);
  words->second -= job.request.words();
  if (words->second <= 0) words_of_.erase(words);
}

void TextHandler::drop_abandoned() {
  std::erase_if(waiting_, [this](const Job& job) {
    if (!job.abandoned.stop_requested()) return false;
    job.respond(abandoned_response());
    forget(job);
    return true;
  });
}

bool TextHandler::admit(std::list<Job>& in_turn, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const int64_t max_share = std::max<int64_t>(1, limits_.active / 2);
  do {
    if (in_turn.empty()) changed_.wait(lock, stop, [this] { return !waiting_.empty(); });
    if (stop.stop_requested()) return false;
    drop_abandoned();
    for (auto next = waiting_.begin(); next != waiting_.end();) {
      if (std::ssize(in_turn) >= limits_.active) break;
      const auto job = next++;
      const auto share = std::count_if(in_turn.begin(), in_turn.end(), [&](const Job& other) {
        return other.client == job->client;
      });
      if (share < max_share) in_turn.splice(in_turn.end(), waiting_, job);
    }
  } while (in_turn.empty());
  return true;
}

void TextHandler::work(const std::stop_token& stop) {
  const c10::InferenceMode inference;
  std::list<Job> in_turn;
  while (admit(in_turn, stop)) {
    if (const std::optional<HttpResponse> response = add_word(in_turn.front())) {
      finish(in_turn.front(), *response);
      in_turn.pop_front();
    } else {
      in_turn.splice(in_turn.end(), in_turn, in_turn.begin());
    }
  }
  for (const Job& job : in_turn) {
    finish(job, error_response(503, "[request] the server is shutting down."));
  }
}

void TextHandler::finish(const Job& job, const HttpResponse& response) {
  try {
    job.respond(response);
  } catch (const std::exception&) {
    // Without memory for an answer, the server's timeout ends the request.
  }
  const std::lock_guard lock(mutex_);
  forget(job);
}

/// Adds a word to a request's current text. Returns the response once the request is complete.
std::optional<HttpResponse> TextHandler::add_word(Job& job) const {
  try {
    if (job.abandoned.stop_requested()) return abandoned_response();
    const TextRequest& request = job.request;
    if (!job.text) {
      job.text = generator_.begin(request.texts[job.finished.size()], request.sampling);
    }
    generator_.add_word(*job.text);
    if (!job.text->complete()) return std::nullopt;
    job.finished.push_back(std::move(job.text->text));
    job.text.reset();
    if (job.finished.size() < request.texts.size()) return std::nullopt;
    return HttpResponse{.body = to_json_text({{"predictions", job.finished}}) + "\n"};
  } catch (const ConfigError& error) {
    return error_response(400, error.what());
  } catch (const std::exception& error) {
    return error_response(500, error.what());
  }
}

}  // namespace tessera::gpt
