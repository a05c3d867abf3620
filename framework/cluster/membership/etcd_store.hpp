#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <tessera/framework/cluster/membership/etcd_gateway.hpp>
#include <tessera/framework/cluster/membership/membership_store.hpp>

namespace tessera::detail {

/// The register of members in etcd. Each member has a key under a lease that its thread renews; one
/// key holds the membership. Whoever sees that it no longer holds proposes the next one, by a
/// transaction that requires the former to be the newest and all members to be there: one of
/// several succeeds, and the others read its result.
class EtcdStore : public MembershipStore {
 public:
  explicit EtcdStore(const MembershipOptions& options);
  ~EtcdStore() override;
  EtcdStore(const EtcdStore&) = delete;
  EtcdStore& operator=(const EtcdStore&) = delete;

  void report_lost(uint64_t generation, const std::string& id, const std::string& reason) override;
  void leave() override;
  bool finish(uint64_t generation) override;

 private:
  using Time = std::chrono::steady_clock::time_point;

  struct Stored {
    Member member;
    bool leaving = false;
    int64_t created = 0;  ///< etcd's revision at which it joined
    std::string lease;
  };
  /// The content of etcd about the run.
  struct Snapshot {
    Membership membership;
    int64_t state_revision = 0;   ///< etcd's revision of the membership; 0: there is none
    std::vector<Stored> members;  ///< in the order in which they joined
    std::map<std::string, std::string> expelled;  ///< reasons by id
  };
  /// Work of the store's thread that another one asks for; returns whether it is done.
  using Command = std::function<bool(const Snapshot&)>;

  void join();
  void run();
  /// One turn of the thread.
  void step();
  void keep_alive();
  Snapshot read();
  void read_state(const std::string& text, Snapshot& snapshot);
  void read_key(const Json& entry, Snapshot& snapshot);
  /// Proposes the next membership, once it is due.
  void decide(const Snapshot& snapshot);
  Presence presence_of(const Snapshot& snapshot) const;
  bool propose(const Snapshot& snapshot, const Membership& next, const std::string& lease);
  bool put_self(bool leaving);
  bool expel(const Snapshot& snapshot, uint64_t generation, const std::string& id,
             const std::string& reason);
  bool transact(const Json& compare, const Json& success);
  std::string grant(int64_t seconds);
  void enqueue(Command command);
  void run_commands(const Snapshot& snapshot);
  void handle_outage(const std::string& what);

  std::string key(const std::string& name) const { return prefix_ + name; }
  std::string state_text(const Membership& membership) const;
  std::string seal(const std::string& key, const std::string& text) const;
  /// Returns the text of a value; nothing if it was sealed under another secret.
  std::optional<std::string> open(const std::string& key, const std::string& value) const;
  void say(const std::string& line) const;

  MembershipOptions options_;
  std::string prefix_;
  EtcdGateway gateway_;
  std::string lease_;
  std::mutex mutex_;  ///< guards the next two
  std::deque<Command> commands_;
  bool stop_ = false;
  // The rest belongs to the thread.
  Time joined_ = {};
  Time next_alive_ = {};
  Time next_read_ = {};
  std::optional<Time> change_seen_;  ///< when the membership was first seen not to hold
  std::optional<Time> waiting_since_;
  std::optional<Time> outage_since_;
  bool warned_ = false;
  bool warned_of_secret_ = false;
  std::thread thread_;
};

}  // namespace tessera::detail
