#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/cluster/internal/job_secret.hpp>

namespace tessera::detail {

/// How one process joins the others that run its program.
struct CoordinationOptions {
  int rank = 0;
  int size = 1;
  /// Where rank 0 listens and the others connect: a name or digits. Rank 0 listens on loopback
  /// only if that is it, else on all addresses of its host.
  std::string address = "127.0.0.1";
  int port = 0;
  /// Processes of another run have another one. It is no secret; rank 0 with none lets any in.
  std::string job = {};
  /// What every process proves that it knows, to rank 0 as rank 0 to it. Without a secret rank 0
  /// lets in whoever comes, beyond loopback only if told to.
  JobAccess access = {};
  /// How long rank 0 waits until every rank is there, and the others until they reach it.
  std::chrono::milliseconds connect_timeout = std::chrono::minutes(5);
  /// After how long a rank is given up that does not answer, or does not arrive where others wait.
  /// Rank 0's counts; by their own the others judge rank 0 alone.
  std::chrono::milliseconds timeout = std::chrono::minutes(2);
  /// Where "[control] waiting for rank 3" goes while rank 0 waits, after 1.5 s and then every
  /// 10; null: the standard error output. Called on a thread of the control plane.
  std::function<void(const std::string& line)> say = {};
};

/// A process of the run.
struct Peer {
  int rank = 0;
  int64_t pid = 0;
  std::string host;
  /// Address by which others reach it: that of its connection to rank 0; of rank 0 the one that
  /// this process reached it by.
  std::string address;
  /// "rank 2 (pid 4711 on host7)".
  std::string describe() const;
};

/// A collective as the control plane sees it: the number of the call, a hash of what all ranks must
/// agree on, and the same as a text for people: "all_reduce of hidden/kernel on batch".
struct CallRecord {
  uint64_t number = 0;
  uint64_t hash = 0;
  int64_t step = -1;  ///< the step of the training; -1 outside of one
  std::string text;
  /// Whether the collective ended here. One that was begun and that nobody waits for must become
  /// done by itself: what is not done for `timeout` ends the run.
  bool done = false;
};

/// What ties the processes of a run together beside the collectives: start-up, small texts, who is
/// alive, and the news that the run is over. Rank 0 listens; every process holds one connection to
/// it and a thread that serves it, so that a process that computes or waits still answers. Needs no
/// libtorch. All functions may be called from any thread.
class Coordination {
 public:
  /// Joins the run: returns when every rank is there. Strangers that connect are turned away.
  /// Throws CommError naming the address, the port that is taken, the ranks that are missing after
  /// the time-out or the one that died meanwhile; ConfigError, while the others go on waiting, for
  /// a rank twice, another number of ranks, another job or another secret, and for an address
  /// beyond loopback without one.
  static std::shared_ptr<Coordination> join(const CoordinationOptions& options);
  virtual ~Coordination() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// All processes, by rank.
  virtual const std::vector<Peer>& peers() const = 0;

  /// The texts that all ranks gave, by rank; the n-th call of a key on one rank meets the n-th on
  /// the others. Texts are at most 64 MiB. Waits for all; whether that takes too long is judged by
  /// `timeout`. Throws CommError once the run was ended.
  virtual std::vector<std::string> gather(const std::string& key, const std::string& text) = 0;

  /// Compares a call with those of the same number on all ranks; returns when all are there and
  /// equal. Throws CommError, on every rank, with both texts where they differ.
  virtual void check(const CallRecord& call) = 0;
  /// What asks this process for its last calls, oldest first: for heartbeats, which carry the last
  /// one, and for the report of a failure. Called on the control plane's thread, so it takes no
  /// lock that is held while a function here is called; replacing it waits for a call under way.
  virtual void set_calls(std::function<std::vector<CallRecord>()> calls) = 0;

  /// Called once, on the control plane's thread, when the run is over: a rank died, was given up,
  /// left while others wait for it, called something else, or aborted. If it is over already, at
  /// once. Not to be replaced from within; replacing it waits for a call under way.
  virtual void set_on_end(std::function<void(const std::string& reason)> on_end) = 0;
  /// Why the run is over; empty while it is not. Waits up to `patience` for the news: a connection
  /// between two ranks may break before rank 0 has told why.
  virtual std::string reason(std::chrono::milliseconds patience = {}) = 0;
  /// Ends the run on all ranks, this one included, with `reason` and the last calls of all; these
  /// are written as JSON into TESSERA_REPORT_DIR, or the folder for temporary files, too. Does not
  /// wait for it.
  virtual void abort(const std::string& reason) = 0;
  /// Keeps why this process is about to leave, for the others to read.
  virtual void report_failure(const std::string& what) = 0;
  /// Says goodbye: the others go on unless they wait for this rank. Of rank 0: waits until all have
  /// left, or the run is over. Never throws. The destructor does so, too.
  virtual void leave() = 0;
};

}  // namespace tessera::detail
