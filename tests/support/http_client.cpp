#include "tests/support/http_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

namespace tessera::test {
namespace {

/// Returns the value of a header field; empty if absent. Names are spelled as this server writes
/// them.
std::string field(const std::string& head, const std::string& name) {
  const size_t at = head.find("\r\n" + name + ": ");
  if (at == std::string::npos) return "";
  const size_t from = at + name.size() + 4;
  return head.substr(from, head.find("\r\n", from) - from);
}

std::chrono::steady_clock::time_point end_of(double seconds) {
  using Clock = std::chrono::steady_clock;
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

HttpClient::HttpClient(int port, const std::string& from)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in own{};
  own.sin_family = AF_INET;
  ::inet_pton(AF_INET, from.c_str(), &own.sin_addr);
  ::bind(socket_, reinterpret_cast<sockaddr*>(&own), sizeof(own));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    const std::string reason = std::strerror(errno);
    ::close(socket_);
    throw std::runtime_error("cannot connect: " + reason);
  }
  const int yes = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

HttpClient::~HttpClient() { ::close(socket_); }

bool HttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

void HttpClient::finish() { ::shutdown(socket_, SHUT_WR); }

bool HttpClient::receive(double seconds) {
  pollfd waiting{socket_, POLLIN, 0};
  if (::poll(&waiting, 1, static_cast<int>(seconds * 1000)) <= 0) return false;
  std::array<char, 16384> chunk;
  const ssize_t count = ::recv(socket_, chunk.data(), chunk.size(), 0);
  if (count <= 0) return false;
  received_.append(chunk.data(), static_cast<size_t>(count));
  return true;
}

bool HttpClient::receive_until(std::chrono::steady_clock::time_point end) {
  const std::chrono::duration<double> left = end - std::chrono::steady_clock::now();
  return left.count() > 0 && receive(left.count());
}

HttpAnswer HttpClient::read_head(double seconds) {
  const auto end = end_of(seconds);
  size_t head_end = 0;
  while ((head_end = received_.find("\r\n\r\n")) == std::string::npos) {
    if (!receive_until(end)) return {};
  }
  HttpAnswer answer;
  answer.head = received_.substr(0, head_end + 2);
  answer.status = std::atoi(answer.head.c_str() + std::strlen("HTTP/1.1 "));
  received_.erase(0, head_end + 4);
  answer.keeps_open = field(answer.head, "Connection") != "close";
  return answer;
}

HttpAnswer HttpClient::read(double seconds) {
  const auto end = end_of(seconds);
  HttpAnswer answer = read_head(seconds);
  if (answer.status == 100) return answer;
  const std::string length = field(answer.head, "Content-Length");
  const size_t size = length.empty() ? 0 : std::stoul(length);
  while (received_.size() < size) {
    if (!receive_until(end)) return {};
  }
  answer.body = received_.substr(0, size);
  received_.erase(0, size);
  return answer;
}

HttpAnswer HttpClient::ask(std::string_view bytes, double seconds) {
  send(bytes);
  return read(seconds);
}

HttpAnswer HttpClient::post(const std::string& target, const std::string& body) {
  return ask(post_bytes(target, body));
}

HttpAnswer HttpClient::get(const std::string& target) {
  return ask("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n");
}

std::string post_bytes(const std::string& target, const std::string& body) {
  return "POST " + target + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

HttpAnswer http_ask(int port, std::string_view bytes) { return HttpClient(port).ask(bytes); }

HttpAnswer http_post(int port, const std::string& target, const std::string& body) {
  return HttpClient(port).post(target, body);
}

HttpAnswer http_get(int port, const std::string& target) { return HttpClient(port).get(target); }

}  // namespace tessera::test
