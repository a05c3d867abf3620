#include <tessera/framework/serving/http/http_session.hpp>

#include <poll.h>

#include <algorithm>
#include <cstdio>

#include <boost/asio/write.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/secret.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/serving/http/predict_reply.hpp>

namespace tessera::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto write_timeout = 10s;
constexpr auto linger_timeout = 1s;
constexpr auto drain_grace = 300ms;
// Maximum interval of deadline checks; polling is cheaper than a timer per phase.
constexpr auto longest_tick = 1000ms;
constexpr size_t read_bytes = 16384;
// Buffer space beyond a full request header, for a chunk header.
constexpr size_t buffer_slack = 65536;
// Only a malicious client sends a body in more chunks than this.
constexpr int64_t max_chunks = 16384;
// Maximum bytes that a client may still send after a refusal.
constexpr int64_t max_discarded = int64_t{8} << 20;

/// Returns the HTTP status for an error from Beast; 0 if the connection is gone.
int status_of(error_code error, bool in_header) {
  if (error == http::error::header_limit) return 431;
  if (error == http::error::body_limit) return 413;
  if (error == http::error::buffer_overflow) return in_header ? 431 : 400;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return 0;
  const bool http_error = error.category() == error_code(http::error::bad_method).category();
  return http_error ? 400 : 0;
}

/// Returns whether a body of this Content-Type may be JSON.
bool is_json_type(std::string type) {
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ')) type.pop_back();
  for (char& c : type) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return type.empty() || type == "application/json" || type == "text/json" ||
         type == "text/plain" || type == "application/x-www-form-urlencoded";
}

template <class Message>
std::string field(const Message& message, http::field name) {
  const auto value = message[name];
  return {value.data(), value.size()};
}

/// Returns status and text of the error if the header fields announce an unsupported body.
std::optional<std::pair<int, std::string>> wrong_fields(
    const http::request_parser<http::string_body>& parser) {
  const auto& request = parser.get();
  for (const auto& [name, plain] : {std::pair(http::field::content_encoding, "identity"),
                                    std::pair(http::field::transfer_encoding, "chunked")}) {
    const std::string encoding = field(request, name);
    if (encoding.empty() || boost::beast::iequals(encoding, plain)) continue;
    return std::pair(415, str("the body must not be compressed. Received: ", http::to_string(name),
                              ' ', in_quotes(encoding), ". To fix: send plain JSON."));
  }
  const bool has_length = parser.chunked() || parser.content_length().has_value();
  if (request.method() == http::verb::post && !has_length) {
    return std::pair(411, "the body's length must be stated. To fix: send Content-Length.");
  }
  const std::string type = field(request, http::field::content_type);
  if (!is_json_type(type)) {
    return std::pair(415, "the body must be JSON. Received: Content-Type " + in_quotes(type) +
                              ". To fix: send application/json.");
  }
  return std::nullopt;
}

}  // namespace

namespace {

std::string client_of(const tcp::socket& socket) {
  error_code error;
  const boost::asio::ip::address address = socket.remote_endpoint(error).address();
  if (error || address.is_v4()) return address.to_string();
  const boost::asio::ip::address_v6 six = address.to_v6();
  if (six.is_v4_mapped()) {
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, six).to_string();
  }
  const auto bytes = six.to_bytes();
  return {bytes.begin(), bytes.begin() + bytes.size() / 2};
}

}  // namespace

HttpSession::HttpSession(tcp::socket&& socket, HttpShared& shared)
    : stream_(std::move(socket), shared.tls),
      shared_(shared),
      timer_(stream_.get_executor()),
      buffer_(static_cast<size_t>(shared.options.max_header) + buffer_slack) {
  client_ = client_of(stream_.socket());
  error_code ignored;
  stream_.socket().set_option(tcp::no_delay(true), ignored);
  on_chunk_ = [this](uint64_t, boost::beast::string_view, error_code& error) {
    if (++chunks_ > max_chunks) error = http::error::body_limit;
  };
}

std::optional<std::chrono::steady_clock::time_point> HttpSession::waiting_since() const {
  const bool waits = phase_ == Phase::handshake || phase_ == Phase::idle ||
                     phase_ == Phase::header || phase_ == Phase::body;
  return waits ? std::optional(waits_) : std::nullopt;
}

void HttpSession::start() {
  served_ = true;
  secure([this] { wait_for_request(); });
  tick();
}

void HttpSession::reject(int status, const std::string& text) {
  secure([this, status, text] { refuse(status, text); });
  tick();
}

/// Calls `next`, with TLS after the handshake. A client that does not speak TLS gets no answer.
void HttpSession::secure(const std::function<void()>& next) {
  if (!stream_.is_encrypted()) return next();
  waits_ = Clock::now();
  enter(Phase::handshake, shared_.draining ? drain_grace : shared_.options.read_timeout);
  stream_.async_handshake([self = shared_from_this(), next](error_code error) {
    if (error || self->phase_ == Phase::closed) return self->close();
    next();
  });
}

void HttpSession::drain() {
  if (phase_ == Phase::idle || phase_ == Phase::handshake) enter(phase_, drain_grace);
}

void HttpSession::close() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  error_code ignored;
  stream_.socket().close(ignored);
  timer_.cancel();
  shared_.ended(this);
}

void HttpSession::enter(Phase phase, std::chrono::milliseconds limit) {
  phase_ = phase;
  deadline_ = Clock::now() + limit;
}

void HttpSession::tick() {
  const HttpServerOptions& options = shared_.options;
  const bool limited = options.response_timeout.count() > 0;
  const auto shortest =
      limited ? std::min(options.read_timeout, options.response_timeout) : options.read_timeout;
  const auto period = std::clamp<std::chrono::milliseconds>(shortest / 4, 10ms, longest_tick);
  timer_.expires_after(shared_.draining ? std::min(period, 50ms) : period);
  timer_.async_wait([self = shared_from_this(), limited](error_code error) {
    if (error || self->phase_ == Phase::closed) return;
    const bool unlimited = self->phase_ == Phase::handling && !limited;
    if (!unlimited && Clock::now() >= self->deadline_) self->expire();
    if (self->phase_ != Phase::closed) self->tick();
  });
}

void HttpSession::expire() {
  error_code error;
  if (phase_ == Phase::handling) {
    abandoned_.request_stop();
    return refuse(
        504, str("the response must be ready within ", shared_.options.response_timeout.count(),
                 " ms. Received: none so far. To fix: ask for less, or try again later."));
  }
  if (phase_ == Phase::idle && stream_.socket().available(error) > 0) return;
  if (phase_ != Phase::header && phase_ != Phase::body) return close();
  // The read that this cancels sends the response.
  timed_out_ = true;
  stream_.socket().cancel(error);
}

void HttpSession::wait_for_request() {
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(shared_.options.max_header));
  parser_->body_limit(static_cast<uint64_t>(shared_.options.max_body));
  parser_->on_chunk_header(on_chunk_);
  chunks_ = 0;
  timed_out_ = false;
  head_ = false;
  line_.clear();
  waits_ = Clock::now();
  if (buffer_.size() > 0) return read_header();
  const HttpServerOptions& options = shared_.options;
  const auto limit = first_ ? options.read_timeout : options.idle_timeout;
  enter(Phase::idle, shared_.draining ? drain_grace : limit);
  first_ = false;
  stream_.async_read_some(buffer_.prepare(read_bytes),
                          [self = shared_from_this()](error_code error, size_t count) {
                            if (error) return self->close();
                            self->buffer_.commit(count);
                            self->read_header();
                          });
}

void HttpSession::read_header() {
  enter(Phase::header, shared_.options.read_timeout);
  http::async_read_header(stream_, buffer_, *parser_,
                          [self = shared_from_this()](error_code error, size_t count) {
                            // Beast's own limit does not count the last line.
                            const auto max = static_cast<size_t>(self->shared_.options.max_header);
                            if (!error && count > max) error = http::error::header_limit;
                            if (error) return self->on_read(error);
                            self->on_header();
                          });
}

bool HttpSession::has_token() const {
  const std::string& token = shared_.options.token;
  if (token.empty()) return true;
  const std::string credentials = field(parser_->get(), http::field::authorization);
  constexpr std::string_view scheme = "bearer ";
  return credentials.size() > scheme.size() &&
         boost::beast::iequals(credentials.substr(0, scheme.size()), scheme) &&
         same_secret(credentials.substr(scheme.size()), token);
}

void HttpSession::on_header() {
  const auto& request = parser_->get();
  const std::string method(request.method_string());
  const std::string target(request.target());
  line_ = method + " " + target;
  head_ = request.method() == http::verb::head;
  if (!has_token()) {
    return refuse(
        401,
        "a request must carry the server's token. Received: another one, or none. To fix: send "
        "Authorization: Bearer TOKEN.");
  }
  if (std::optional<HttpResponse> refusal = shared_.handler->refuse(method, target)) {
    // The connection closes unless there is no body, as the body is not read.
    return answer(std::move(*refusal), !parser_->is_done() || !request.keep_alive());
  }
  if (const auto wrong = wrong_fields(*parser_)) return refuse(wrong->first, wrong->second);
  const std::string expect = field(request, http::field::expect);
  if (expect.empty() || parser_->is_done()) return read_body();
  static constexpr char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
  enter(Phase::body, shared_.options.read_timeout);
  boost::asio::async_write(stream_, boost::asio::buffer(go_on, sizeof(go_on) - 1),
                           [self = shared_from_this()](error_code error, size_t) {
                             if (error) return self->close();
                             self->read_body();
                           });
}

void HttpSession::read_body() {
  enter(Phase::body, shared_.options.read_timeout);
  if (parser_->is_done()) return on_request();
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](error_code error, size_t) {
                     if (error) return self->on_read(error);
                     self->on_request();
                   });
}

void HttpSession::on_read(error_code error) {
  if (phase_ == Phase::closed) return;
  const HttpServerOptions& options = shared_.options;
  if (std::exchange(timed_out_, false)) {
    return refuse(408, str("a request must arrive within ", options.read_timeout.count(), " ms"));
  }
  const int status = status_of(error, phase_ == Phase::header);
  if (status == 0) return close();
  if (status == 431) {
    refuse(431, str("the header may have at most ", options.max_header, " bytes. Received: more."));
  } else if (status == 413) {
    refuse(413, str("the body may have at most ", options.max_body, " bytes, in at most ",
                    max_chunks, " chunks. Received: more. To fix: send several requests."));
  } else {
    refuse(400, "the request must be HTTP/1.1. Received: " + error.message() + ".");
  }
}

void HttpSession::on_request() {
  enter(Phase::handling, shared_.options.response_timeout);
  noticed_ = false;
  HttpRequest request{.method = std::string(parser_->get().method_string()),
                      .target = std::string(parser_->get().target()),
                      .body = std::move(parser_->get().body()),
                      .client = client_,
                      .abandoned = abandoned_.get_token()};
  const auto respond = [weak = weak_from_this(),
                        executor = stream_.get_executor()](HttpResponse response) {
    boost::asio::post(executor, [weak, response = std::move(response)]() mutable {
      const auto self = weak.lock();
      if (!self || self->phase_ != Phase::handling) return;
      self->answer(std::move(response), !self->parser_->get().keep_alive());
    });
  };
  try {
    shared_.handler->handle(std::move(request), respond);
  } catch (const std::exception& error) {
    return answer({.status = 500, .body = error_reply(one_line(error.what(), 500))}, true);
  }
  shared_.handling();
}

bool HttpSession::notice_hang_up() {
  if (phase_ != Phase::handling || abandoned_.stop_requested()) return false;
  if (!std::exchange(noticed_, true)) return true;
  // Reading would not do: a client that pipelines has sent its next request.
  pollfd state{stream_.socket().native_handle(), POLLRDHUP, 0};
  const bool changed = ::poll(&state, 1, 0) > 0;
  if (changed && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
    abandoned_.request_stop();
  }
  return !abandoned_.stop_requested();
}

void HttpSession::refuse(int status, const std::string& text) {
  answer({.status = status, .body = error_reply("[request] " + text)}, true);
}

void HttpSession::answer(HttpResponse response, bool close_after) {
  if (shared_.options.access_log) {
    const std::string line = line_.empty() ? "-" : one_line(line_, 200);
    std::fprintf(stderr, "%s %d\n", line.c_str(), response.status);
  }
  close_after = close_after || shared_.draining;
  response_.emplace(static_cast<http::status>(response.status), 11);
  response_->set(http::field::content_type, "application/json");
  if (response.status == 401) response_->set(http::field::www_authenticate, "Bearer");
  if (!response.allow.empty()) response_->set(http::field::allow, response.allow);
  response_->keep_alive(!close_after);
  // HTTP/1.0 needs explicit confirmation of keep-alive.
  if (!close_after && parser_->get().version() < 11) {
    response_->set(http::field::connection, "keep-alive");
  }
  // The response to HEAD states the length of the body but omits the body.
  response_->content_length(response.body.size());
  if (!head_) response_->body() = std::move(response.body);
  write(close_after);
}

void HttpSession::write(bool close_after) {
  enter(Phase::writing, write_timeout);
  http::async_write(stream_, *response_,
                    [self = shared_from_this(), close_after](error_code error, size_t) {
                      if (error || self->phase_ == Phase::closed) return self->close();
                      self->response_.reset();
                      if (close_after) return self->linger();
                      self->wait_for_request();
                    });
}

/// Reads what the client still sends before closing: closing with unread bytes would reset the
/// connection, and the client might lose the response.
void HttpSession::linger() {
  enter(Phase::lingering, linger_timeout);
  buffer_.clear();
  if (!stream_.is_encrypted()) return half_close();
  // Fails if the client is still sending, but close_notify has been sent by then.
  stream_.async_shutdown([self = shared_from_this()](error_code) {
    if (self->phase_ != Phase::closed) self->half_close();
  });
}

void HttpSession::half_close() {
  error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  discard();
}

/// Reads from the socket below TLS, as discarded bytes need no decryption.
void HttpSession::discard() {
  stream_.socket().async_read_some(buffer_.prepare(read_bytes),
                                   [self = shared_from_this()](error_code error, size_t count) {
                                     self->discarded_ += static_cast<int64_t>(count);
                                     if (error || self->discarded_ > max_discarded)
                                       return self->close();
                                     self->discard();
                                   });
}

}  // namespace tessera::detail
