// Replaces http_server.cpp and its companions in a build without Boost.
#include <tessera/framework/serving/http/http_server.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/serving/http/predict_reply.hpp>

namespace tessera::detail {

class HttpServer::Core {};

HttpResponse error_response(int status, const std::string& text) {
  return {.status = status, .body = error_reply(one_line(text, 1000))};
}

HttpResponse abandoned_response() { return error_response(499, "the client has hung up"); }

HttpServer::HttpServer(const HttpServerOptions&, HttpHandler&) {
  throw ConfigError("serve", "servers need Boost.Beast", "a build without it",
                    "install libboost1.81-dev and build again with TESSERA_SERVING=ON");
}

HttpServer::~HttpServer() = default;

int HttpServer::port() const { return 0; }

void HttpServer::run() {}

void HttpServer::stop() {}

}  // namespace tessera::detail
