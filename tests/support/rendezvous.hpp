#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tessera::test {

/// The meeting point of the threads of run_ranks(). Every call throws CommError once aborted.
class Rendezvous {
 public:
  /// The tensors of each rank.
  using Parcels = std::shared_ptr<const std::map<int, std::vector<at::Tensor>>>;

  Rendezvous(int ranks, std::chrono::milliseconds patience)
      : patience_(patience), left_(static_cast<size_t>(ranks)), waits_in_(left_.size()) {}

  int size() const { return static_cast<int>(left_.size()); }

  /// Returns once all of `ranks` have made the same `call`.
  Parcels meet(int rank, const std::vector<int>& ranks, const std::string& call,
               std::vector<at::Tensor> parcel);

  /// Returns the texts of all ranks once each has given one: the n-th text of a key matches the
  /// n-th of the others.
  std::vector<std::string> gather(int rank, const std::string& key, const std::string& text);

  /// One message from a rank to another, known to the one that comes first.
  struct Slot {
    std::string sent, awaited;  ///< what either side calls it
    at::Tensor tensor;
  };
  /// Sends a tensor; the n-th message from one rank to another matches the n-th receive().
  void send(int from, int to, const std::string& what, at::Tensor tensor);
  std::shared_ptr<Slot> receive(int from, int to, const std::string& what);
  /// Returns the tensor once it is sent.
  at::Tensor take(const Slot& slot);

  /// Announces that the rank makes no more calls.
  void leave(int rank);
  void abort(const std::string& reason);
  /// Aborts and throws.
  [[noreturn]] void fail(const std::string& reason);
  void check_alive();

 private:
  struct Meeting {
    std::vector<int> ranks;
    std::string call;
    std::map<int, std::vector<at::Tensor>> parcels;
    bool complete() const { return parcels.size() == ranks.size(); }
  };
  using Lock = std::unique_lock<std::mutex>;

  void set_reason(const std::string& reason);
  [[noreturn]] void fail_locked(const std::string& reason);
  void check_locked() const;
  void check_partners(int rank, const Meeting& meeting);
  template <class Ready>
  void await(Lock& lock, const std::string& what, const Ready& ready);

  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string reason_;
  std::vector<bool> left_;
  std::vector<std::shared_ptr<Meeting>> waits_in_;
  std::map<std::vector<int>, std::shared_ptr<Meeting>> open_;
  /// The messages of each pair of ranks, and how many were sent and awaited.
  struct Edge {
    std::vector<std::shared_ptr<Slot>> slots;
    size_t sent = 0, awaited = 0;
  };
  std::shared_ptr<Slot> slot_locked(int from, int to, size_t number);
  void check_slot(const Slot& slot, int from, int to);
  std::map<std::pair<int, int>, Edge> edges_;
  std::map<std::string, std::vector<std::vector<std::string>>> texts_;  ///< texts of a key, by rank
};

}  // namespace tessera::test
