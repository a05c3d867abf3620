#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::detail {

/// The last collectives of this process, for failure reports, and a hash over all its collectives.
/// Thread-safe.
class FlightRecorder {
 public:
  FlightRecorder() : calls_(64) {}

  /// The number of a call, counted from 1, and its hash.
  struct Added {
    uint64_t number = 0, hash = 0;
  };
  /// Adds a call, labelled CommLabel::current().
  Added add(const CollectiveCall& call, int64_t step);
  /// Sets whether this process is inside an operation of the call.
  void set_inside(uint64_t number, bool inside);
  /// Adds work that must finish before the call counts as done.
  void add_work(uint64_t number, const WorkPtr& work);
  /// Returns the record of a call, or of the last call if that one is no longer kept.
  CallRecord record(uint64_t number) const;
  /// Returns all records kept, oldest first.
  std::vector<CallRecord> records() const;
  /// Number of the last call.
  uint64_t count() const;
  /// Hash over all calls.
  uint64_t hash() const;

 private:
  struct Call {
    CommOp op = CommOp::all_reduce;
    Reduce kind = Reduce::sum;
    at::ScalarType dtype = at::kFloat;
    int64_t axis = -1, to_axis = -1;
    int64_t step = -1;
    uint64_t hash = 0;
    bool inside = false;
    std::vector<std::weak_ptr<Work>> works;
    std::string dims, label;
    Shape shape;
  };
  static std::string text(const Call& call);
  static bool done(const Call& call);
  Call* find(uint64_t number);
  CallRecord record_locked(uint64_t number) const;

  mutable std::mutex mutex_;
  std::vector<Call> calls_;  ///< call n at n % size
  uint64_t count_ = 0;
  uint64_t hash_ = 0;
};

}  // namespace tessera::detail
