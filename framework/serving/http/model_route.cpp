#include <tessera/framework/serving/http/model_route.hpp>

#include <algorithm>
#include <charconv>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/serving/http/predict_reply.hpp>

namespace tessera::detail {
namespace {

/// Removes `word` from the front of `text`; returns whether it was there.
bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

std::optional<int64_t> take_number(std::string_view& text) {
  int64_t number = 0;
  if (text.empty() || text.front() == '-') return std::nullopt;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(rest - text.data()));
  return number;
}

}  // namespace

std::optional<ModelRoute> parse_model_route(const std::string& target) {
  std::string_view rest = std::string_view(target).substr(0, target.find('?'));
  if (rest == "/healthz") return ModelRoute{};
  if (!take(rest, "/v1/models/")) return std::nullopt;
  ModelRoute route{ModelAction::status, std::string(rest.substr(0, rest.find_first_of("/:")))};
  if (route.name.empty()) return std::nullopt;
  rest.remove_prefix(route.name.size());
  if (take(rest, "/versions/")) {
    route.version = take_number(rest);
    if (!route.version) return std::nullopt;
  }
  if (rest.empty()) return route;
  if (rest == ":predict") {
    route.action = ModelAction::predict;
  } else if (rest == "/metadata") {
    route.action = ModelAction::metadata;
  } else {
    return std::nullopt;
  }
  return route;
}

std::optional<HttpResponse> refuse_route(const std::string& method, const std::string& target,
                                         std::span<const std::string> names) {
  const std::optional<ModelRoute> route = parse_model_route(target);
  if (!route) {
    return HttpResponse{
        404, error_reply("[request] the path must be known. Received: " + in_quotes(target) +
                         ". To fix: use /v1/models/" + names[0] + ":predict.")};
  }
  if (route->action != ModelAction::health &&
      std::find(names.begin(), names.end(), route->name) == names.end()) {
    return HttpResponse{
        404, error_reply("[request] the model must be served. Received: " + in_quotes(route->name) +
                         ". To fix: use one of " + quoted_list(names) + ".")};
  }
  const bool posts = route->action == ModelAction::predict;
  const char* expected = posts ? "POST" : "GET";
  if (method == expected || (!posts && method == "HEAD")) return std::nullopt;
  return HttpResponse{405,
                      error_reply(str("[request] the method must be ", expected,
                                      ". Received: ", in_quotes(method), ".")),
                      posts ? "POST" : "GET, HEAD"};
}

}  // namespace tessera::detail
