#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/scoped_value.hpp>

namespace tessera {

/// Kinds of communication between devices.
enum class CommOp : uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  exchange,
  collective_permute,
  transfer  ///< from one view of a mesh to another
};

/// "all_reduce", "all_gather", …
std::string to_string(CommOp op);

namespace detail {

/// Returns the bytes that each of k = `members` members receives in a collective of `bytes` per
/// member: all_reduce 2(k-1)/k of its input, all_gather (k-1)/k of its result, reduce_scatter and
/// all_to_all (k-1)/k of their input, exchange, collective_permute and transfer all of it.
double received_bytes(CommOp op, double bytes, int64_t members);

}  // namespace detail

/// One collective; all its groups together are one entry.
struct CommEntry {
  CommOp op = CommOp::all_reduce;
  std::string dims;        ///< mesh dimensions, "batch" or "batch,model"
  int64_t members = 1;     ///< devices in each group
  int64_t bytes = 0;       ///< bytes per device, the argument of received_bytes()
  double received = 0;     ///< bytes each device receives
  std::string place = {};  ///< path of the layer or weight; empty for the loss and metrics
};

/// Counts the collectives of this thread while a CommLogScope on it is alive. Virtual devices count
/// as real ones, so a log shows what the same program sends between separate devices.
class CommLog {
 public:
  const std::vector<CommEntry>& entries() const { return entries_; }
  /// Returns the number of collectives of one kind over the given dimensions ("" for any).
  int64_t count(CommOp op, const std::string& dims = "") const;
  double received() const;
  void clear() { entries_.clear(); }
  void add(CommEntry entry);
  /// One line per collective.
  std::string to_string() const;

 private:
  std::vector<CommEntry> entries_;
};

/// While alive, adds the collectives of this thread to `log`. Scopes nest; only the innermost log
/// counts.
class CommLogScope {
 public:
  explicit CommLogScope(CommLog& log);
  /// Returns the log of this thread's innermost scope, or null.
  static CommLog* current();

 private:
  detail::ScopedValue<CommLog*> log_;
};

namespace detail {

/// While alive, labels the collectives of this thread with the path of a layer or weight. The text
/// must outlive it.
class CommLabel {
 public:
  explicit CommLabel(const std::string& label);
  /// Returns the innermost label; empty without one.
  static const std::string& current();

 private:
  ScopedValue<const std::string*> label_;
};

}  // namespace detail

}  // namespace tessera
