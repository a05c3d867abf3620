#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::detail {

/// The last calls of this process, for failure reports, and a hash over those that all ranks make.
/// Calls of some ranks, on views, are numbered by themselves. Thread-safe.
class FlightRecorder {
 public:
  FlightRecorder() : calls_(64) {}

  /// How many calls this process has made, this one included; its number among those of the same
  /// ranks, counted from 1, and its hash.
  struct Added {
    uint64_t count = 0, number = 0, hash = 0;
  };
  /// Adds a collective of `ranks` (empty: all), labelled CommLabel::current().
  Added add(const CollectiveCall& call, const std::vector<int>& ranks, int64_t step);
  /// Adds a transfer between these ranks, which is in no order with respect to other calls.
  Added add_transfer(const CollectiveCall& call, const std::vector<int>& ranks, int64_t step);

  // A call is named by its Added::count.

  /// Sets whether this process is inside an operation of the call.
  void set_inside(uint64_t call, bool inside);
  /// Adds work that must finish before the call counts as done.
  void add_work(uint64_t call, const WorkPtr& work);
  /// Returns the record of a call, or of the last call if that one is no longer kept.
  CallRecord record(uint64_t call) const;
  /// Returns all records kept, oldest first.
  std::vector<CallRecord> records() const;
  /// How many calls this process has made.
  uint64_t count() const;
  /// Hash over all calls that all ranks make.
  uint64_t hash() const;

 private:
  struct Call {
    CommOp op = CommOp::all_reduce;
    Reduce kind = Reduce::sum;
    at::ScalarType dtype = at::kFloat;
    int64_t axis = -1, to_axis = -1;
    int64_t step = -1;
    uint64_t number = 0, hash = 0;
    uint64_t after = 0, others = 0;  ///< see CallRecord
    std::vector<int> ranks;
    bool inside = false;
    std::vector<std::weak_ptr<Work>> works;
    std::string dims, label;
    Shape shape;
  };
  static std::string text(const Call& call);
  static bool done(const Call& call);
  /// Adds a call without its number; returns its entry.
  Call& append(const CollectiveCall& call, const std::vector<int>& ranks, int64_t step);
  Call* find(uint64_t call);
  CallRecord record_locked(uint64_t call) const;

  mutable std::mutex mutex_;
  std::vector<Call> calls_;  ///< call n at n % size
  uint64_t count_ = 0;
  uint64_t collectives_of_all_ = 0;  ///< number of the last call of all ranks
  std::map<std::vector<int>, uint64_t> numbers_;  ///< numbers of the last calls of some ranks
  uint64_t transfers_ = 0;
  uint64_t hash_ = 0;
};

}  // namespace tessera::detail
