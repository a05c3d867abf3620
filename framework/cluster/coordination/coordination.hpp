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
  /// host name or IP address to which ranks connect. Rank 0 listens on loopback only if this is a
  /// loopback address, otherwise on all addresses of its host.
  std::string address = "127.0.0.1";
  int port = 0;
  /// name of the run, which keeps processes of other runs out; not a secret. Empty on rank 0: any
  /// process is admitted.
  std::string job = {};
  /// secret by which every process and rank 0 authenticate each other and all that they send.
  /// Without one rank 0 admits anyone, and listens beyond loopback only if told to.
  JobAccess access = {};
  /// how long rank 0 waits for all ranks, and the other ranks for rank 0
  std::chrono::milliseconds connect_timeout = std::chrono::minutes(5);
  /// how long a rank may be unresponsive, or missing in an exchange, before the run ends. Rank 0's
  /// value applies; other ranks use their own for rank 0 only.
  std::chrono::milliseconds timeout = std::chrono::minutes(2);
  /// receives "[coordination] waiting for rank 3" while rank 0 waits, after 1.5 s and then every 10
  /// s (default: standard error). Called on a thread of the control plane.
  std::function<void(const std::string& line)> say = {};
  /// whether to stop waiting for the other ranks: join() then throws CommError within 0.1 s. Called
  /// on several threads (default: wait). If it is set, processes meet again and again: one that is
  /// refused, as others still meet there, asks again
  std::function<bool()> given_up = {};
};

/// A process of the run.
struct Peer {
  int rank = 0;
  int64_t pid = 0;
  std::string host;
  /// IP address of the process: that of its connection to rank 0; for rank 0 the one by which this
  /// process reached it
  std::string address;
  /// Returns "rank 2 (pid 4711 on host7)".
  std::string describe() const;
};

/// A collective call as seen by the control plane: its number, a hash of everything all ranks must
/// agree on, and the same as readable text: "all_reduce of hidden/kernel on batch". Calls of some
/// ranks only are numbered by themselves.
struct CallRecord {
  uint64_t number = 0;  ///< among the calls of the same ranks, counted from 1
  uint64_t hash = 0;    ///< 0: ranks make such calls in different orders
  int64_t step = -1;    ///< training step; -1: outside of a step
  std::string text;
  /// whether the collective has completed here. An asynchronous call that nobody waits for must
  /// become done by itself: a call that is not done after `timeout` ends the run.
  bool done = false;
  std::vector<int> ranks = {};  ///< the ranks that make it, ascending; empty: all
  /// number of the last call of all ranks before it; only for a call of some ranks
  uint64_t after = 0;
  uint64_t others = 0;  ///< how many calls of some ranks this rank has made, this one included

  /// Returns the number of this rank's last call of all ranks.
  uint64_t number_of_all() const { return ranks.empty() ? number : after; }
  /// Returns how many calls this rank has made.
  uint64_t count() const { return number_of_all() + others; }
};

/// Coordinates the processes of a run apart from collectives: start-up, exchange of small texts,
/// liveness, and notification of the run's end. Rank 0 listens; every process has one connection to
/// it and a thread that serves it, so that a process that computes or blocks still answers. Needs
/// no libtorch. All functions are thread-safe.
class Coordination {
 public:
  /// Joins the run; returns when all ranks are present. Connections from other programs are
  /// refused. Throws CommError naming the address, the port in use, the ranks missing after the
  /// timeout or the rank that died meanwhile. Throws ConfigError, while the others continue to
  /// wait, for a duplicate rank, a different number of ranks, another job or secret, and for an
  /// address beyond loopback without a secret.
  static std::shared_ptr<Coordination> join(const CoordinationOptions& options);
  virtual ~Coordination() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// All processes, by rank.
  virtual const std::vector<Peer>& peers() const = 0;

  /// Gathers a text of at most 64 MiB from each rank; returns them by rank. The n-th call for a key
  /// on one rank matches the n-th on the others. Waits for all ranks, subject to `timeout`. Throws
  /// CommError once the run has ended.
  virtual std::vector<std::string> gather(const std::string& key, const std::string& text) = 0;

  /// Compares a call with those of the same number on all ranks; returns once all are present and
  /// equal. If two differ, throws CommError with both texts on every rank.
  virtual void check(const CallRecord& call) = 0;
  /// Sets the function that returns this process' last calls, oldest first, for heartbeats (which
  /// carry the last one) and for failure reports. It runs on the control plane's thread and must
  /// not take a lock that is held while a function of this class is called. Replacing it waits for
  /// a call in progress.
  virtual void set_calls(std::function<std::vector<CallRecord>()> calls) = 0;

  /// Sets a function that is called once, on the control plane's thread, when the run is over: a
  /// rank died, timed out, left while others wait for it, made a different call, or aborted. Called
  /// at once if the run is over already. It must not replace itself; replacing it waits for a call
  /// in progress.
  virtual void set_on_end(std::function<void(const std::string& reason)> on_end) = 0;
  /// Returns why the run is over; empty while it is not. Waits up to `patience`, as a connection
  /// between two ranks may break before rank 0 has sent the reason.
  virtual std::string reason(std::chrono::milliseconds patience = {}) = 0;
  /// Ends the run on all ranks, including this one, with `reason` and the last calls of all ranks,
  /// which are also written as JSON to TESSERA_REPORT_DIR or the folder for temporary files. Does
  /// not wait for the end.
  virtual void abort(const std::string& reason) = 0;
  /// Records why this process is about to leave, for the other ranks' error.
  virtual void report_failure(const std::string& what) = 0;
  /// Leaves the run; the others continue unless they wait for this rank. On rank 0 waits until all
  /// have left or the run is over. Never throws. The destructor calls it, too.
  virtual void leave() = 0;
  /// Ends the run for this rank at once, without a word to the others, which see its connection
  /// close; it needs no answer of rank 0, which may be stuck.
  virtual void give_up(const std::string& reason) = 0;
};

}  // namespace tessera::detail
