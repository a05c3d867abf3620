#include "apps/gpt/text_server.hpp"

#include <utility>

#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/serving/http/model_route.hpp>
#include <tessera/framework/serving/http/predict_request.hpp>

namespace tessera::gpt {

using namespace detail;

namespace {

HttpResponse refusal(int status, const std::string& text) {
  return {.status = status, .body = error_reply(one_line(text, 1000))};
}

[[noreturn]] void refuse_value(const std::string& key, const std::string& expected,
                               const std::string& received) {
  throw RequestError(400, "request", in_quotes(key) + " is " + expected, received, "correct it");
}

}  // namespace

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
  if (sampling.top_k < 1) refuse_value("top_k", "at least 1", str(sampling.top_k));
  if (!(sampling.temperature > 0)) {
    refuse_value("temperature", "above 0", str(sampling.temperature));
  }
  return request;
}

TextServer::TextServer(const Generator& generator, const std::string& name,
                       const Sampling& defaults, const TextLimits& limits,
                       const HttpServerOptions& http)
    : generator_(generator),
      name_(name),
      defaults_(defaults),
      limits_(limits),
      server_(http, *this),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

std::optional<HttpResponse> TextServer::refuse(const std::string& method,
                                               const std::string& target) {
  return refuse_route(method, target, name_);
}

void TextServer::handle(HttpRequest&& request, HttpRespond respond) {
  const std::optional<ModelRoute> route = parse_model_route(request.target, name_);
  if (!route || route->version || route->action == ModelAction::metadata) {
    return respond(
        refusal(404, "[request] only one version is served, without metadata. Received: " +
                         in_quotes(request.target) + "."));
  }
  if (route->action != ModelAction::predict) return respond({.body = "{\"status\": \"ok\"}\n"});
  try {
    TextRequest text_request = parse_text_request(request.body, defaults_, limits_);
    std::unique_lock lock(mutex_);
    if (std::ssize(waiting_) < limits_.waiting) {
      waiting_.push_back({std::move(text_request), std::move(respond)});
      lock.unlock();
      changed_.notify_all();
      return;
    }
    lock.unlock();
    respond(refusal(
        503, str("[request] at most ", limits_.waiting, " requests wait. To fix: try again.")));
  } catch (const RequestError& error) {
    respond(refusal(error.status(), error.what()));
  } catch (const ConfigError& error) {
    respond(refusal(400, error.what()));
  }
}

std::optional<TextServer::Job> TextServer::next_job(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) return std::nullopt;
  Job job = std::move(waiting_.front());
  waiting_.pop_front();
  return job;
}

void TextServer::work(const std::stop_token& stop) {
  const c10::InferenceMode inference;
  while (std::optional<Job> job = next_job(stop)) {
    try {
      job->respond(answer(job->request, stop));
    } catch (const std::exception&) {
      // Without memory for an answer, the request's own timeout ends it.
    }
  }
}

HttpResponse TextServer::answer(const TextRequest& request, const std::stop_token& stop) const {
  try {
    Json texts = Json::array();
    for (const std::string& text : request.texts) {
      if (stop.stop_requested()) return refusal(503, "[request] the server is shutting down.");
      texts.push_back(generator_.generate(text, request.sampling, stop));
    }
    return {.body = to_json_text({{"predictions", texts}}) + "\n"};
  } catch (const ConfigError& error) {
    return refusal(400, error.what());
  } catch (const std::exception& error) {
    return refusal(500, error.what());
  }
}

}  // namespace tessera::gpt
