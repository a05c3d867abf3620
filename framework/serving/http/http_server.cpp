#include <tessera/framework/serving/http/http_server.hpp>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <unordered_map>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/secret.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/serving/http/http_session.hpp>
#include <tessera/framework/serving/http/predict_reply.hpp>
#include <tessera/framework/serving/http/tls_context.hpp>

namespace tessera::detail {

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

// A hang-up is noticed within two intervals.
constexpr auto hang_up_interval = 40ms;

}  // namespace

/// The listening socket and the connections, all on the thread of run().
class HttpServer::Core {
 public:
  Core(const HttpServerOptions& options, HttpHandler& handler)
      : tls_(options.certificate, options.key),
        acceptor_(context_),
        pause_(context_),
        deadline_(context_),
        hang_ups_(context_),
        signals_(context_) {
    shared_.options = options;
    check_token();
    shared_.handler = &handler;
    shared_.ended = [this](HttpSession* session) {
      sessions_.erase(session);
      end_if_drained();
    };
    shared_.handling = [this] { watch_for_hang_ups(); };
    listen();
    accept();
    if (options.signals) watch_signals();
  }
  ~Core() {
    // close() erases a session from sessions_: iterate over a moved-out table.
    for (const auto& [session, held] : std::exchange(sessions_, {})) held->close();
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  int port() const { return acceptor_port_; }
  void run() { context_.run(); }
  void stop() {
    asio::post(context_, [this] { drain(); });
  }

 private:
  void check_token() const {
    const HttpServerOptions& options = shared_.options;
    if (!options.token.empty()) check_secret("serve, token", options.token);
    error_code error;
    const asio::ip::address address = asio::ip::make_address(options.host, error);
    const bool beyond = !error && !address.is_loopback();
    const bool open = beyond && options.token.empty();
    if (beyond && !open && options.certificate.empty()) {
      std::cerr << str("Warning: [serve] listens beyond this host, at ", options.host,
                       ", without TLS: the network can read the token. Set a certificate and its "
                       "key, or let a proxy in front encrypt\n")
                << std::flush;
    }
    if (open && !options.insecure) {
      throw ConfigError("serve", "a server that listens beyond this host needs a token",
                        options.host + " without one",
                        "set a token, or pass --insecure to serve any client");
    }
    if (open) {
      std::cerr << str("Warning: [serve] listens beyond this host, at ", options.host,
                       ", without a token: anyone who can reach it may send requests\n")
                << std::flush;
    }
  }

  void listen() {
    const HttpServerOptions& options = shared_.options;
    try {
      const tcp::endpoint endpoint(asio::ip::make_address(options.host),
                                   static_cast<uint16_t>(options.port));
      acceptor_.open(endpoint.protocol());
      acceptor_.set_option(tcp::acceptor::reuse_address(true));
      acceptor_.bind(endpoint);
      acceptor_.listen(asio::socket_base::max_listen_connections);
      acceptor_.non_blocking(true);
      acceptor_port_ = acceptor_.local_endpoint().port();
    } catch (const boost::system::system_error& error) {
      throw ConfigError(
          "serve", str("the server can listen on ", options.host, ", port ", options.port),
          error.code().message(), "choose another port, or an address of this machine in digits");
    }
  }

  void accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (!error) {
        begin(std::move(socket));
        return accept();
      }
      // Probably out of file descriptors: an immediate retry would fail too.
      pause_.expires_after(50ms);
      pause_.async_wait([this](error_code cancelled) {
        if (!cancelled && acceptor_.is_open()) accept();
      });
    });
  }

  void begin(tcp::socket&& socket) {
    const auto count = static_cast<int64_t>(sessions_.size());
    const int64_t limit = shared_.options.max_connections;
    shared_.tls = tls_.current();
    const auto session = std::make_shared<HttpSession>(std::move(socket), shared_);
    const bool served = count < limit || make_room(session->client());
    if (!served && count >= 2 * limit) return;
    sessions_.emplace(session.get(), session);
    if (served) return session->start();
    session->reject(503, str("at most ", limit, " connections are served. To fix: try again."));
  }

  /// Makes room for one more connection of this client; returns whether there is. Closes the
  /// longest-waiting connection of the client with the most connections, if that client has more
  /// than this one would have.
  bool make_room(const std::string& client) {
    std::unordered_map<std::string, int64_t> counts;
    for (const auto& entry : sessions_) counts[entry.first->client()] += entry.first->served();
    const int64_t own = counts[client] + 1;
    const auto largest = std::max_element(counts.begin(), counts.end(),
                                          [](auto& a, auto& b) { return a.second < b.second; });
    if (largest->second <= own) return false;
    HttpSession* oldest = nullptr;
    for (const auto& entry : sessions_) {
      const auto since = entry.first->waiting_since();
      if (!since || entry.first->client() != largest->first) continue;
      if (oldest == nullptr || *since < *oldest->waiting_since()) oldest = entry.first;
    }
    if (oldest != nullptr) oldest->close();
    return oldest != nullptr;
  }

  /// Asks all connections at intervals whether the client has hung up, while requests are handled.
  /// One timer for all costs a short request nothing.
  void watch_for_hang_ups() {
    if (std::exchange(watches_, true)) return;
    hang_ups_.expires_after(hang_up_interval);
    hang_ups_.async_wait([this](error_code cancelled) {
      watches_ = false;
      if (cancelled) return;
      bool again = false;
      for (const auto& entry : sessions_) again = entry.second->notice_hang_up() || again;
      if (again) watch_for_hang_ups();
    });
  }

  void watch_signals() {
    std::signal(SIGPIPE, SIG_IGN);
    signals_.add(SIGTERM);
    signals_.add(SIGINT);
    wait_for_signal();
  }

  void wait_for_signal() {
    signals_.async_wait([this](error_code error, int) {
      if (error) return;
      if (shared_.draining) return context_.stop();
      wait_for_signal();
      drain();
    });
  }

  void drain() {
    if (std::exchange(shared_.draining, true)) return;
    shared_.handler->drain();
    // Also serve clients that are connected but not accepted yet.
    for (error_code error; !error;) {
      tcp::socket socket(context_);
      acceptor_.accept(socket, error);
      if (!error) begin(std::move(socket));
    }
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    for (const auto& entry : sessions_) entry.second->drain();
    deadline_.expires_after(shared_.options.drain_timeout);
    deadline_.async_wait([this](error_code cancelled) {
      if (!cancelled) context_.stop();
    });
    end_if_drained();
  }

  void end_if_drained() {
    if (!shared_.draining || !sessions_.empty()) return;
    deadline_.cancel();
    hang_ups_.cancel();
    signals_.cancel();
  }

  TlsContext tls_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  int acceptor_port_ = 0;
  asio::steady_timer pause_;
  asio::steady_timer deadline_;
  asio::steady_timer hang_ups_;
  bool watches_ = false;  ///< whether hang_ups_ is set
  asio::signal_set signals_;
  HttpShared shared_;
  std::unordered_map<HttpSession*, std::shared_ptr<HttpSession>> sessions_;
};

HttpResponse error_response(int status, const std::string& text) {
  return {.status = status, .body = error_reply(one_line(text, 1000))};
}

HttpResponse abandoned_response() {
  return {
      .status = 499,
      .body = error_reply("[request] a client must wait for the response with its connection "
                          "open. Received: a connection that it closed. To fix: leave it open.")};
}

HttpServer::HttpServer(const HttpServerOptions& options, HttpHandler& handler)
    : core_(std::make_unique<Core>(options, handler)) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const { return core_->port(); }

void HttpServer::run() { core_->run(); }

void HttpServer::stop() { core_->stop(); }

}  // namespace tessera::detail
