#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <tessera/framework/base/internal/base64.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/cluster/coordination/coordination_socket.hpp>

namespace tessera::test {

using namespace detail;

/// The part of etcd's JSON gateway that members use, on a thread of this process, with failures
/// that a test plants.
class FakeEtcd {
 public:
  FakeEtcd() {
    std::string error;
    listener_ = listen_at("127.0.0.1", port_, error);
    thread_ = std::thread([this] { run(); });
  }
  ~FakeEtcd() {
    stop_ = true;
    thread_.join();
  }
  FakeEtcd(const FakeEtcd&) = delete;
  FakeEtcd& operator=(const FakeEtcd&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  size_t connections() const { return open_; }
  int conflicts() const { return conflicts_; }
  int transactions() const { return transactions_; }

  // What goes wrong, from now on.
  std::atomic<int> unavailable = 0;  ///< requests that are answered with status 503
  std::atomic<int> hang_ups = 0;     ///< requests that are done, but whose answer is lost
  std::atomic<bool> silent = false;  ///< whether requests get no answer
  std::atomic<bool> cuts_watches = false;
  std::atomic<bool> needs_token = false;  ///< whether user "u" has to give password "p"
  std::atomic<int> token = 1;             ///< number of the token that is valid

  void set_version(const std::string& version) {
    const std::lock_guard lock(mutex_);
    version_ = version;
  }
  /// Ends the lease of the keys whose text contains `text`, as if it had not been renewed.
  void lose_lease_of(const std::string& text) {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, entry] : keys_) {
      if (key.find(text) != key.npos && !entry.lease.empty()) ended_.push_back(entry.lease);
    }
  }
  void put(const std::string& key, const std::string& value) {
    const std::lock_guard lock(mutex_);
    put_entry(key, value, "");
  }
  std::vector<std::string> keys() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& each : keys_) names.push_back(each.first);
    return names;
  }

 private:
  using Clock = std::chrono::steady_clock;

  struct Entry {
    std::string value;
    int64_t created = 0;
    int64_t modified = 0;
    std::string lease;
  };
  struct Connection {
    FileDescriptor socket;
    std::string in;
    bool watches = false;
    bool closed = false;
  };

  void run() {
    while (!stop_) {
      std::vector<pollfd> entries = {{listener_.get(), POLLIN, 0}};
      for (const Connection& each : connections_) entries.push_back({each.socket.get(), POLLIN, 0});
      ::poll(entries.data(), entries.size(), 5);
      for (FileDescriptor next = accept_from(listener_); next.valid();
           next = accept_from(listener_)) {
        connections_.push_back({std::move(next), ""});
      }
      const std::lock_guard lock(mutex_);
      const int64_t before = revision_;
      end_leases();
      for (Connection& each : connections_) serve(each);
      if (revision_ != before) ring();
      connections_.remove_if([](const Connection& each) { return each.closed; });
      open_ = connections_.size();
    }
  }

  void ring() {
    for (Connection& each : connections_) {
      if (!each.watches) continue;
      if (cuts_watches) each.closed = true;
      write(each, "9\r\n{\"r\": 1}\n\r\n");
    }
  }

  static void write(Connection& connection, const std::string& bytes) {
    [[maybe_unused]] const auto sent =
        ::send(connection.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  void serve(Connection& connection) {
    char bytes[65536];
    ssize_t size = 0;
    while ((size = ::recv(connection.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
      connection.in.append(bytes, static_cast<size_t>(size));
    }
    if (size == 0) connection.closed = true;
    const size_t head = connection.in.find("\r\n\r\n");
    if (head == std::string::npos || silent) return;
    const size_t length = connection.in.find("Content-Length: ");
    const size_t body = length < head ? std::stoul(connection.in.substr(length + 16)) : 0;
    if (connection.in.size() < head + 4 + body) return;
    const std::string first = connection.in.substr(0, head);
    const std::string text = connection.in.substr(head + 4, body);
    connection.in.erase(0, head + 4 + body);
    const size_t from = first.find(' ') + 1;
    answer(connection, first, first.substr(from, first.find(' ', from) - from), text);
  }

  void answer(Connection& connection, const std::string& head, const std::string& path,
              const std::string& text) {
    if (path == "/version") {
      return reply(connection, 200, "{\"etcdserver\":\"" + version_ + "\"}");
    }
    if (unavailable > 0) {
      --unavailable;
      return reply(connection, 503, "{\"error\":\"etcdserver: no leader\",\"code\":14}");
    }
    const Json request = Json::parse(text);
    if (path == "/v3/auth/authenticate") {
      const bool good = request.value("name", "") == "u" && request.value("password", "") == "p";
      if (!good) {
        return reply(connection, 400,
                     "{\"error\":\"etcdserver: authentication failed, invalid user ID or "
                     "password\",\"code\":3}");
      }
      return reply(connection, 200, "{\"token\":\"t" + std::to_string(token) + "\"}");
    }
    if (needs_token && head.find("Authorization: t" + std::to_string(token)) == head.npos) {
      return reply(connection, 401, "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}");
    }
    if (path == "/v3/watch") {
      connection.watches = true;
      return write(connection,
                   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: "
                   "chunked\r\n\r\n9\r\n{\"c\": 1}\n\r\n");
    }
    const std::string result = handle(path, request).dump();
    if (hang_ups > 0) {
      --hang_ups;
      connection.closed = true;
      return;
    }
    reply(connection, 200, result);
  }

  static void reply(Connection& connection, int status, const std::string& body) {
    write(connection, "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " +
                          std::to_string(body.size()) + "\r\n\r\n" + body);
  }

  Json handle(const std::string& path, const Json& request) {
    if (path == "/v3/lease/grant") {
      const std::string id = std::to_string(++lease_count_ + 7000);
      leases_[id] = {std::stol(request.at("TTL").get<std::string>()), Clock::now()};
      return {{"ID", id}, {"TTL", request.at("TTL")}};
    }
    if (path == "/v3/lease/keepalive") {
      const auto id = request.at("ID").get<std::string>();
      const auto lease = leases_.find(id);
      if (lease == leases_.end()) return {{"result", {{"ID", id}}}};
      lease->second.second = Clock::now();
      return {{"result", {{"ID", id}, {"TTL", std::to_string(lease->second.first)}}}};
    }
    if (path == "/v3/lease/revoke") {
      ended_.push_back(request.at("ID").get<std::string>());
      end_leases();
      return Json::object();
    }
    if (path == "/v3/kv/range") return range(request);
    if (path == "/v3/kv/txn") return transact(request);
    return {{"error", "unknown path"}};
  }

  static std::string decoded(const Json& object, const char* name) {
    return from_base64(object.value(name, std::string())).value_or("");
  }

  Json range(const Json& request) const {
    Json found = Json::array();
    for (const auto& [key, entry] : keys_) {
      if (key < decoded(request, "key") || key >= decoded(request, "range_end")) continue;
      Json each = {{"key", to_base64(key)},
                   {"create_revision", std::to_string(entry.created)},
                   {"mod_revision", std::to_string(entry.modified)},
                   {"value", to_base64(entry.value)}};
      if (!entry.lease.empty()) each["lease"] = entry.lease;
      found.push_back(each);
    }
    Json result = {{"header", {{"revision", std::to_string(revision_)}}}};
    if (!found.empty()) result["kvs"] = found;
    return result;
  }

  Json transact(const Json& request) {
    ++transactions_;
    for (const Json& compare : request.at("compare")) {
      const auto entry = keys_.find(decoded(compare, "key"));
      const bool there = entry != keys_.end();
      const bool mod = compare.at("target") == "MOD";
      const int64_t actual = !there ? 0 : mod ? entry->second.modified : entry->second.created;
      const int64_t expected =
          std::stoll(compare.at(mod ? "mod_revision" : "create_revision").get<std::string>());
      const bool holds = compare.at("result") == "EQUAL" ? actual == expected : actual > expected;
      if (holds) continue;
      ++conflicts_;
      return Json::object();
    }
    for (const Json& each : request.at("success")) {
      if (each.contains("request_put")) {
        const Json& fields = each["request_put"];
        put_entry(decoded(fields, "key"), decoded(fields, "value"),
                  fields.value("lease", std::string()));
      } else {
        ++revision_;
        keys_.erase(decoded(each.at("request_delete_range"), "key"));
      }
    }
    return {{"succeeded", true}};
  }

  void put_entry(const std::string& key, const std::string& value, const std::string& lease) {
    ++revision_;
    Entry& entry = keys_[key];
    if (entry.created == 0) entry.created = revision_;
    entry = {value, entry.created, revision_, lease};
  }

  void end_leases() {
    for (const auto& [id, lease] : leases_) {
      if (Clock::now() - lease.second > std::chrono::seconds(lease.first)) ended_.push_back(id);
    }
    for (const std::string& id : ended_) {
      leases_.erase(id);
      const auto gone =
          std::erase_if(keys_, [&](const auto& each) { return each.second.lease == id; });
      if (gone > 0) ++revision_;
    }
    ended_.clear();
  }

  FileDescriptor listener_;
  int port_ = 0;
  std::list<Connection> connections_;
  std::mutex mutex_;  ///< guards the rest but for the atomics
  std::map<std::string, Entry> keys_;
  std::map<std::string, std::pair<int64_t, Clock::time_point>> leases_;
  std::vector<std::string> ended_;
  int64_t revision_ = 1;
  int64_t lease_count_ = 0;
  std::string version_ = "3.4.23";
  std::atomic<size_t> open_ = 0;
  std::atomic<int> conflicts_ = 0;
  std::atomic<int> transactions_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace tessera::test
