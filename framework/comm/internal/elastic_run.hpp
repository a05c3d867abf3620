#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/cluster.hpp>
#include <tessera/framework/cluster/membership/membership_store.hpp>
#include <tessera/framework/comm/internal/process_communicator.hpp>

namespace tessera::detail {

/// This process as a member of an elastic run, and the generation that its connections belong to.
/// One for a process, as of its meshes' connections. Functions are for the thread of collectives.
class ElasticRun {
 public:
  /// Returns the run of this process; null if it is in none, or has not looked for its cluster yet.
  static ElasticRun* current();
  /// Joins the run that TESSERA_MEMBERS names, at the first call, and waits for a generation with
  /// this process. Returns the cluster of the process' generation. Throws CommError if the register
  /// cannot be reached or the run is over.
  static Cluster join(const ClusterFlags& flags);

  ~ElasticRun();
  ElasticRun(const ElasticRun&) = delete;
  ElasticRun& operator=(const ElasticRun&) = delete;

  uint64_t generation() const { return generation_; }
  Cluster cluster() const;
  /// The membership of the process' generation, as it began.
  const Membership& membership() const { return membership_; }
  Membership newest() const { return store_->membership(); }
  /// Whether the members of another generation are to meet.
  bool is_outdated() const { return store_->membership().generation > generation_; }
  /// Whether a member of the process' generation is lost.
  bool has_lost_members() const;
  /// Whether too few processes are left, or this one is out.
  bool is_broken() const;

  /// Whether the run has failed for want of processes, and this is the first one left.
  bool is_first_of_failed() const;

  /// Asks for a generation without this process.
  void leave();
  bool leaves() const { return leaves_; }

  /// Ends the communicator's connections from now on as soon as a member of the generation is lost.
  void attach(const std::shared_ptr<ProcessCommunicator>& communicator);
  /// Begins and ends what can go on without lost members; outside of it their loss ends the run.
  /// begin_fit() returns the number of the fit in this process, counted from 1.
  uint64_t begin_fit();
  void end_fit() { survives_ = false; }
  /// Tells that the fit was complete before this process joined: until the next one it communicates
  /// no more than before the first.
  void miss_fit() { set_joining(true); }

  /// Waits for a generation after the present one, while too few processes are left without limit.
  /// Throws CommError with the register's reason once the run is over or this process out of it;
  /// Interrupted if it asked to leave and the others have gone on; `why` if nothing changes for 15
  /// s, since then no loss of a process was the cause.
  Membership wait_for_next(const CommError& why);
  /// Makes a membership, of wait_for_next(), that of the process' connections.
  void enter(const Membership& membership);
  /// Whether another generation than the entered one is to meet, or none; thread-safe.
  bool given_up() const;
  /// Tells the register that the run is complete, at the end of the process.
  void finish();
  /// Ends the threads of the register's client, which must not outlive the libraries that they use.
  /// Nothing else may be called afterwards.
  void close();

 private:
  explicit ElasticRun(const ClusterFlags& flags);
  void on_change(const Membership& membership);
  void set_joining(bool joining);
  std::string end_text(const Membership& membership) const;

  std::string job_;
  JobAccess access_;
  std::unique_ptr<MembershipStore> store_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<bool> survives_{true};
  std::mutex mutex_;  ///< guards the next two members against on_change()
  Membership membership_;
  std::weak_ptr<ProcessCommunicator> communicator_;
  uint64_t fits_ = 0;
  bool leaves_ = false;
  bool told_waiting_ = false;
};

}  // namespace tessera::detail
