#pragma once

#include <string>
#include <thread>
#include <utility>

#include <tessera/framework/serving/http/http_server.hpp>
#include <tessera/framework/serving/http/model_route.hpp>
#include <tessera/framework/serving/http/predict_reply.hpp>
#include <tessera/framework/serving/http/predict_request.hpp>

namespace tessera::test {

using namespace detail;

/// A model server without the model: it serves paths of the name "imdb", parses requests and
/// answers with one 0 for each instance.
class ParsingServer : private HttpHandler {
 public:
  explicit ParsingServer(const HttpServerOptions& options = {})
      : server_(options, *this), thread_([this] { server_.run(); }) {}
  ~ParsingServer() override {
    server_.stop();
    thread_.join();
  }

  int port() const { return server_.port(); }

 private:
  std::optional<HttpResponse> refuse(const std::string& method,
                                     const std::string& target) override {
    return refuse_route(method, target, names_);
  }
  void handle(HttpRequest&& request, HttpRespond respond) override {
    if (request.method != "POST") return respond({.body = "{}"});
    try {
      const PredictRequest read = parse_predict_request(request.body);
      const std::vector<float> zeros(static_cast<size_t>(read.instances()));
      respond({.body = predict_reply(zeros, {read.instances()}, {}, read.columnar)});
    } catch (const RequestError& error) {
      respond({.status = error.status(), .body = error_reply(error.what())});
    }
  }

  const std::vector<std::string> names_{"imdb"};
  HttpServer server_;
  std::thread thread_;
};

}  // namespace tessera::test
