#include <tessera/framework/cluster/membership/etcd_gateway.hpp>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/http.hpp>

#include <tessera/framework/base/internal/base64.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/secret.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/coordination/coordination_socket.hpp>
#include <tessera/framework/cluster/membership/etcd_connection.hpp>

namespace tessera::detail {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

constexpr auto request_time = 2s;
/// How long a watch that was lost stays closed, so that an etcd that ends each is not flooded.
constexpr auto watch_pause = 500ms;
constexpr uint64_t max_reply_bytes = uint64_t{64} << 20;
constexpr uint64_t max_file_bytes = 1 << 20;
constexpr int grpc_unavailable = 14;
constexpr int grpc_unauthenticated = 16;

/// Runs `io` until `done`. At the deadline closes the socket, which ends what is in progress.
/// Returns false if that was necessary.
bool run_until(asio::io_context& io, const bool& done, steady_clock::time_point deadline,
               tcp::socket& socket) {
  bool in_time = true;
  while (!done) {
    io.restart();
    if (!in_time) {
      io.run_one();
    } else if (io.run_one_until(deadline) == 0 && steady_clock::now() >= deadline) {
      in_time = false;
      error_code ignored;
      socket.close(ignored);
    }
  }
  return in_time;
}

std::string tls_reason(const error_code& error) {
  const unsigned long last = ERR_peek_last_error();
  const char* reason =
      ERR_reason_error_string(last != 0 ? last : static_cast<unsigned long>(error.value()));
  ERR_clear_error();
  return reason != nullptr ? reason : error.message();
}

[[noreturn]] void fail_file(const std::string& variable, const std::string& path,
                            const error_code& error) {
  throw ConfigError(variable, "the file is one in PEM that OpenSSL accepts",
                    str(in_quotes(path), ": ", tls_reason(error)), "name another file");
}

std::unique_ptr<asio::ssl::context> make_tls(const EtcdAccess& access) {
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  context->set_verify_mode(asio::ssl::verify_peer);
  error_code error;
  if (access.ca.empty()) {
    context->set_default_verify_paths(error);
  } else {
    context->add_certificate_authority(asio::buffer(read_file(access.ca, max_file_bytes)), error);
    if (error) fail_file("TESSERA_ETCD_CA", access.ca, error);
  }
  if (access.certificate.empty()) return context;
  context->use_certificate_chain(asio::buffer(read_file(access.certificate, max_file_bytes)),
                                 error);
  if (error) fail_file("TESSERA_ETCD_CERTIFICATE", access.certificate, error);
  // An encrypted key must not prompt on the terminal.
  context->set_password_callback([](size_t, asio::ssl::context::password_purpose) { return ""; });
  const std::string key = read_private_file("TESSERA_ETCD_KEY", access.key, max_file_bytes);
  context->use_private_key(asio::buffer(key), asio::ssl::context::pem, error);
  if (error) fail_file("TESSERA_ETCD_KEY", access.key, error);
  return context;
}

/// Adopts a connected descriptor.
tcp::socket adopt(asio::io_context& io, FileDescriptor descriptor) {
  int domain = AF_INET;
  socklen_t size = sizeof domain;
  ::getsockopt(descriptor.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size);
  tcp::socket socket(io);
  socket.assign(domain == AF_INET6 ? tcp::v6() : tcp::v4(), descriptor.release());
  return socket;
}

/// Returns the end of the range of all keys with a prefix.
std::string end_of_prefix(std::string prefix) {
  prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

http::request<http::string_body> make_request(const std::string& method, const std::string& path,
                                              const std::string& body, const std::string& host,
                                              const std::string& token) {
  http::request<http::string_body> request(http::string_to_verb(method), path, 11);
  request.set(http::field::host, host);
  request.set(http::field::user_agent, "tessera");
  if (!token.empty()) request.set(http::field::authorization, token);
  if (!body.empty()) request.set(http::field::content_type, "application/json");
  request.body() = body;
  request.prepare_payload();
  return request;
}

}  // namespace

/// Asio's part of a gateway, which few sources have to compile.
struct EtcdAsio {
  asio::io_context io;
  std::unique_ptr<asio::ssl::context> tls;
};

/// A connection on which etcd reports changes. What it says does not matter, as whoever is told
/// reads all keys again.
class EtcdWatch : public std::enable_shared_from_this<EtcdWatch> {
 public:
  EtcdWatch(std::unique_ptr<EtcdConnection> connection, http::request<http::string_body> request,
            std::atomic<bool>& rung)
      : connection_(std::move(connection)), request_(std::move(request)), rung_(rung) {}

  bool open() const { return open_; }
  steady_clock::time_point closed_at() const { return closed_at_; }
  void start() {
    http::async_write(*connection_, request_,
                      [self = shared_from_this()](error_code error, size_t) {
                        if (error) return self->end();
                        self->read();
                      });
  }
  void close() {
    error_code ignored;
    connection_->socket().close(ignored);
  }

 private:
  void read() {
    connection_->async_read_some(asio::buffer(bytes_),
                                 [self = shared_from_this()](error_code error, size_t) {
                                   if (error) return self->end();
                                   self->rung_ = true;
                                   self->read();
                                 });
  }
  void end() {
    open_ = false;
    closed_at_ = steady_clock::now();
    rung_ = true;
  }

  std::unique_ptr<EtcdConnection> connection_;
  http::request<http::string_body> request_;
  std::atomic<bool>& rung_;
  std::array<char, 16384> bytes_{};
  bool open_ = true;
  steady_clock::time_point closed_at_ = {};
};

EtcdGateway::EtcdGateway(EtcdAccess access)
    : access_(std::move(access)),
      asio_(std::make_unique<EtcdAsio>()),
      request_ms_(std::chrono::duration_cast<std::chrono::milliseconds>(request_time).count()) {
  for (const EtcdEndpoint& each : access_.endpoints) {
    if (each.tls && !asio_->tls) asio_->tls = make_tls(access_);
  }
}

EtcdGateway::~EtcdGateway() {
  if (watch_) watch_->close();
}

EtcdGateway::Time EtcdGateway::deadline() const {
  return steady_clock::now() + std::chrono::milliseconds(request_ms_);
}

void EtcdGateway::hurry(std::chrono::milliseconds time) { request_ms_ = time.count(); }

std::string EtcdGateway::own_ip() const { return own_ip_; }

std::unique_ptr<EtcdConnection> EtcdGateway::connect(std::string& error) {
  const EtcdEndpoint& endpoint = access_.endpoints[endpoint_];
  const Time until = deadline();
  FileDescriptor descriptor = connect_to(endpoint.host, endpoint.port, until, error);
  if (!descriptor.valid()) return nullptr;
  own_ip_ = own_address(descriptor.get());
  auto connection = std::make_unique<EtcdConnection>(adopt(asio_->io, std::move(descriptor)),
                                                     endpoint.tls ? asio_->tls.get() : nullptr);
  if (connection->tls() == nullptr) return connection;
  error_code no_address;
  asio::ip::make_address(endpoint.host, no_address);
  if (no_address) {
    SSL_set_tlsext_host_name(connection->tls()->native_handle(), endpoint.host.c_str());
  }
  connection->tls()->set_verify_callback(asio::ssl::host_name_verification(endpoint.host));
  bool done = false;
  error_code failure;
  connection->tls()->async_handshake(asio::ssl::stream_base::client, [&](error_code result) {
    failure = result;
    done = true;
  });
  const bool in_time = run_until(asio_->io, done, until, connection->socket());
  if (in_time && !failure) return connection;
  error = in_time ? str("TLS: ", tls_reason(failure)) : "no TLS handshake in time";
  return nullptr;
}

EtcdGateway::Reply EtcdGateway::send(const std::string& method, const std::string& path,
                                     const std::string& body) {
  std::string errors;
  // One more for a connection that etcd has closed meanwhile.
  for (size_t attempt = 0; attempt <= access_.endpoints.size(); ++attempt) {
    const EtcdEndpoint& endpoint = access_.endpoints[endpoint_];
    std::string error = "it does not answer";
    if (!connection_) connection_ = connect(error);
    if (connection_) {
      const auto request =
          make_request(method, path, body, address_text(endpoint.host, endpoint.port), token_);
      http::response_parser<http::string_body> parser;
      parser.body_limit(max_reply_bytes);
      bool done = false;
      error_code failure;
      http::async_write(*connection_, request, [&](error_code sent, size_t) {
        failure = sent;
        done = sent.failed();
        if (done) return;
        http::async_read(*connection_, connection_->buffer(), parser,
                         [&](error_code received, size_t) {
                           failure = received;
                           done = true;
                         });
      });
      const bool in_time = run_until(asio_->io, done, deadline(), connection_->socket());
      if (in_time && !failure) {
        connection_->set_used();
        Reply reply{static_cast<int>(parser.get().result_int()), parser.get().body()};
        if (!parser.get().keep_alive()) connection_.reset();
        return reply;
      }
      const bool stale = connection_->used();
      connection_.reset();
      if (in_time) error = failure.message();
      if (stale && in_time) continue;
    }
    errors += str(errors.empty() ? "" : "; ", endpoint.url(), ": ", error);
    endpoint_ = (endpoint_ + 1) % access_.endpoints.size();
    if (attempt + 1 == access_.endpoints.size()) break;
  }
  throw EtcdUnavailable("elastic", "etcd answers (TESSERA_MEMBERS)", errors,
                        "start etcd there, and check URL, port and firewall");
}

void EtcdGateway::check_version() {
  const Reply reply = send("GET", "/version", "");
  std::string version;
  try {
    const Json json = parse_json(reply.body, "etcd");
    if (json.is_object() && json.contains("etcdserver")) {
      version = json_as<std::string>(json["etcdserver"], JsonPath("etcd").key("etcdserver"));
    }
  } catch (const ConfigError&) {
    // Another server.
  }
  int major = 0;
  int minor = 0;
  const std::string url = access_.endpoints[endpoint_].url();
  if (reply.status != 200 || std::sscanf(version.c_str(), "%d.%d", &major, &minor) != 2) {
    throw ConfigError("elastic", "etcd answers (TESSERA_MEMBERS)",
                      str("another server at ", url, ", status ", reply.status),
                      "check URL and port");
  }
  if (major > 3 || (major == 3 && minor >= 4)) return;
  throw ConfigError("elastic", "etcd is of version 3.4 or newer",
                    str("version ", one_line(version), " at ", url), "install a newer one");
}

void EtcdGateway::authenticate() {
  token_.clear();
  const Reply reply =
      send("POST", "/v3/auth/authenticate",
           to_json_text({{"name", access_.user}, {"password", access_.password}}, -1));
  const Json json = read_reply("/v3/auth/authenticate", reply);
  if (json.contains("token")) {
    token_ = json_as<std::string>(json["token"], JsonPath("etcd").key("token"));
  }
}

Json EtcdGateway::read_reply(const std::string& path, const Reply& reply) const {
  if (reply.status != 200) refuse(path, reply);
  try {
    // Some replies are streams, of which one line is due.
    return parse_json(reply.body.substr(0, reply.body.find('\n')), "etcd");
  } catch (const ConfigError& error) {
    throw EtcdRefusal("elastic", str("etcd answers ", path, " with JSON"), error.what(),
                      "check URL and port", 0);
  }
}

void EtcdGateway::refuse(const std::string& path, const Reply& reply) const {
  std::string message = one_line(reply.body.substr(0, reply.body.find('\n')), 200);
  int code = 0;
  try {
    const Json json = parse_json(reply.body, "etcd");
    if (json.is_object() && json.contains("code")) {
      code = json_as<int>(json["code"], JsonPath("etcd").key("code"));
    }
    if (json.is_object() && json.contains("error") && json["error"].is_string()) {
      message = one_line(json_as<std::string>(json["error"], JsonPath("etcd")), 200);
    }
  } catch (const ConfigError&) {
    // Not the gateway's own words.
  }
  const std::string received =
      str(message, " (status ", reply.status, ") from ", access_.endpoints[endpoint_].url());
  if (code == grpc_unavailable || reply.status == 502 || reply.status == 503 ||
      reply.status == 504) {
    throw EtcdUnavailable("elastic", str("etcd answers ", path), received,
                          "look at etcd's log: it may have no leader");
  }
  throw EtcdRefusal("elastic", str("etcd accepts ", path), received,
                    access_.user.empty() ? "if etcd asks for a user, set TESSERA_ETCD_USER and "
                                           "TESSERA_ETCD_PASSWORD_FILE"
                                         : "check user, password and role of TESSERA_ETCD_USER",
                    code);
}

Json EtcdGateway::post(const std::string& path, const Json& request) {
  const std::string body = to_json_text(request, -1);
  if (token_.empty() && !access_.user.empty()) authenticate();
  Reply reply = send("POST", path, body);
  try {
    return read_reply(path, reply);
  } catch (const EtcdRefusal& error) {
    // A token ends after a few minutes.
    if (error.code() != grpc_unauthenticated || access_.user.empty()) throw;
  }
  authenticate();
  return read_reply(path, send("POST", path, body));
}

void EtcdGateway::watch(const std::string& prefix) {
  if (watch_ && (watch_->open() || steady_clock::now() < watch_->closed_at() + watch_pause)) return;
  std::string error;
  auto connection = connect(error);
  if (!connection) {
    throw EtcdUnavailable("elastic", "etcd answers (TESSERA_MEMBERS)", error,
                          "start etcd there, and check URL, port and firewall");
  }
  const EtcdEndpoint& endpoint = access_.endpoints[endpoint_];
  const Json create = {
      {"create_request",
       {{"key", to_base64(prefix)}, {"range_end", to_base64(end_of_prefix(prefix))}}}};
  watch_ =
      std::make_shared<EtcdWatch>(std::move(connection),
                                  make_request("POST", "/v3/watch", to_json_text(create, -1),
                                               address_text(endpoint.host, endpoint.port), token_),
                                  woken_);
  watch_->start();
}

void EtcdGateway::wait(Time until) {
  while (!woken_.exchange(false) && steady_clock::now() < until) {
    asio_->io.restart();
    // Without a watch there is nothing to run.
    const auto work = asio::make_work_guard(asio_->io);
    asio_->io.run_one_until(until);
  }
}

void EtcdGateway::wake() {
  woken_ = true;
  asio::post(asio_->io, [] {});
}

}  // namespace tessera::detail
