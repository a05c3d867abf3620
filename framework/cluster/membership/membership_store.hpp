#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <tessera/framework/cluster/cluster.hpp>
#include <tessera/framework/cluster/internal/job_secret.hpp>
#include <tessera/framework/cluster/membership/generation.hpp>

namespace tessera::detail {

/// How a process joins an elastic run.
struct MembershipOptions {
  /// where the register is: "host:port" of a launcher, or the URLs of an etcd cluster, separated by
  /// commas: "https://user@host1:2379,https://host2:2379"
  std::string where;
  /// name of the run
  std::string job;
  JobAccess access = {};
  /// rules of the run. A launcher's are its own; in etcd the first process of the run sets the
  /// numbers, and others with different ones are refused
  MembershipRules rules = {};
  /// how long etcd keeps a member that gives no sign of life, at least 2 s: nothing else tells it
  /// that a process has ended
  std::chrono::seconds lease = std::chrono::seconds(2);
  /// IP address by which the others reach this process (default: the one by which it reaches the
  /// register)
  std::string address = {};
  /// how long to wait for the register
  std::chrono::milliseconds connect_timeout = std::chrono::minutes(1);
  /// where credentials for etcd come from, see etcd_access() (default: this process' environment)
  EnvironmentLookup environment = {};
  /// receives warnings (default: standard error)
  std::function<void(const std::string& line)> say = {};
};

/// The newest membership and those who wait for it.
class MembershipNews {
 public:
  Membership newest() const;
  Membership wait_for_change(uint64_t revision, std::chrono::milliseconds patience);
  /// Waits until the run is over or has a generation after `generation`; returns the newest.
  Membership wait_for_end_of(uint64_t generation, std::chrono::milliseconds patience);
  void set_on_change(std::function<void(const Membership&)> on_change);
  /// Takes in a membership. Ignored, and false, if it is not newer or this process is expelled, so
  /// that nothing of an earlier generation is believed in a later one.
  bool update(const Membership& membership);
  /// Takes in that this process is no member any more.
  void expel(const std::string& reason);

 private:
  void publish(const Membership& membership);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Membership newest_;
  std::mutex callback_mutex_;
  std::function<void(const Membership&)> on_change_;
  uint64_t told_ = 0;  ///< revision that on_change_ has seen; guarded by callback_mutex_
};

/// This process' place in the register of members, outside of any member, so that the death of the
/// process that has rank 0 is like any other's. Decides nothing about the training: a membership
/// says who may meet; whoever meets and how far they were is for others to agree on. All functions
/// are thread-safe.
class MembershipStore {
 public:
  /// Joins as a newcomer, and keeps up the membership on a thread of its own. Throws CommError if
  /// the register cannot be reached, ConfigError if it refuses this process.
  static std::unique_ptr<MembershipStore> join(const MembershipOptions& options);
  /// Gives up the membership at once. Others see a process that left if leave() was called and
  /// their membership has no place for it, else a lost one.
  virtual ~MembershipStore() = default;

  const Member& self() const { return self_; }
  /// Returns the newest membership. Its phase is `expelled` once this process is out: it was silent
  /// or reported as lost. It may then join again, as a newcomer.
  Membership membership() const { return news_.newest(); }
  /// Waits for a membership after `revision`, at most for `patience`; returns the newest.
  Membership wait_for_change(uint64_t revision, std::chrono::milliseconds patience) {
    return news_.wait_for_change(revision, patience);
  }
  /// Sets a function that is called with each new membership on the store's thread, and at once if
  /// there is one. It must not call this class. Replacing it waits for a call in progress.
  void set_on_change(std::function<void(const Membership&)> on_change) {
    news_.set_on_change(std::move(on_change));
  }

  /// Reports that another member of a generation is lost: a connection with it broke. Ignored
  /// unless that generation is still the newest.
  virtual void report_lost(uint64_t generation, const std::string& id,
                           const std::string& reason) = 0;
  /// Asks for a generation without this process, which should stay until it is no member of the
  /// newest membership (Membership::is_member).
  virtual void leave() = 0;
  /// Tells that the run is complete. Returns whether it is; not if a newer generation has formed
  /// meanwhile or this process was expelled.
  virtual bool finish(uint64_t generation) = 0;

 protected:
  MembershipStore() = default;

  Member self_;
  MembershipNews news_;
};

/// Returns where the register of this process' run is: TESSERA_MEMBERS, which `launch --elastic`
/// sets; "" without one.
std::string register_address(const EnvironmentLookup& environment = {});

/// Returns a new id for a member.
std::string new_member_id();

/// Returns the processes of the newest generation, as those who coordinate them see them: the first
/// member listens. Name and secret are those of the generation, derived from the run's, so that
/// nobody who is still in another generation gets in. Throws StateError if `id` is not in it.
Cluster cluster_of(const Membership& membership, const std::string& id, const std::string& job,
                   const JobAccess& access);

}  // namespace tessera::detail
