#include "tests/support/wire_proxy.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

namespace tessera::test {

using namespace detail;

namespace {

bool send_all(const FileDescriptor& socket, const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t count =
        ::send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (count > 0) sent += static_cast<size_t>(count);
    pollfd entry{socket.get(), POLLOUT, 0};
    if (count < 0) ::poll(&entry, 1, 1000);
  }
  return true;
}

/// Passes on what has arrived. Returns false if the connection is closed.
bool pass(const FileDescriptor& from, const FileDescriptor& to, const WireEdit& edit) {
  std::array<char, 65536> bytes{};
  const ssize_t count = ::recv(from.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (count <= 0) return false;
  return send_all(to, edit({bytes.data(), static_cast<size_t>(count)}));
}

}  // namespace

WireProxy::WireProxy(int port, std::function<Edits()> edits)
    : target_(port), edits_(std::move(edits)) {
  std::string error;
  listener_ = listen_at("127.0.0.1", port_, error);
  thread_ = std::thread([this] { run(); });
}

WireProxy::~WireProxy() {
  stop_.wake();
  thread_.join();
}

void WireProxy::accept_one() {
  FileDescriptor client = accept_from(listener_);
  if (!client.valid()) return;
  std::string error;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  FileDescriptor server = connect_to("127.0.0.1", target_, deadline, error);
  if (server.valid()) links_.push_back({std::move(client), std::move(server), edits_()});
}

void WireProxy::run() {
  while (true) {
    std::vector<pollfd> entries = {{stop_.descriptor(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Link& link : links_) {
      entries.push_back({link.client.get(), POLLIN, 0});
      entries.push_back({link.server.get(), POLLIN, 0});
    }
    ::poll(entries.data(), entries.size(), -1);
    if (entries[0].revents != 0) return;
    size_t at = 2;
    for (auto link = links_.begin(); link != links_.end(); at += 2) {
      bool open = true;
      if (entries[at].revents != 0) open = pass(link->client, link->server, link->edits.up);
      if (open && entries[at + 1].revents != 0) {
        open = pass(link->server, link->client, link->edits.down);
      }
      // One side has closed its end; what it sent before is passed on.
      if (!open) pass(link->client, link->server, link->edits.up);
      link = open ? std::next(link) : links_.erase(link);
    }
    if (entries[1].revents != 0) accept_one();
  }
}

}  // namespace tessera::test
