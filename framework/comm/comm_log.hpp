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
  collective_permute
};

/// "all_reduce", "all_gather", …
std::string to_string(CommOp op);

namespace detail {

/// Bytes that each of `members` receives when the collective handles `bytes` per member:
/// all_reduce 2(k-1)/k of its addend, all_gather (k-1)/k of its result, reduce_scatter and
/// all_to_all (k-1)/k of its input, exchange and collective_permute all of it.
double received_bytes(CommOp op, double bytes, int64_t members);

}  // namespace detail

/// One collective: all its groups together count once.
struct CommEntry {
  CommOp op = CommOp::all_reduce;
  std::string dims;        ///< mesh dimensions, "batch" or "batch,model"
  int64_t members = 1;     ///< devices in each group
  int64_t bytes = 0;       ///< what received_bytes() counts from, per device
  double received = 0;     ///< bytes each device receives
  std::string place = {};  ///< layer or weight it is for; empty for the loss and metrics
};

/// Counts what devices exchange while a CommLogScope on it lives in this thread. Virtual devices
/// count as real ones, so a log says what the same program sends on separate devices.
class CommLog {
 public:
  const std::vector<CommEntry>& entries() const { return entries_; }
  /// Collectives of one kind over the given dimensions ("" for any).
  int64_t count(CommOp op, const std::string& dims = "") const;
  double received() const;
  void clear() { entries_.clear(); }
  void add(CommEntry entry);
  /// One line per collective.
  std::string to_string() const;

 private:
  std::vector<CommEntry> entries_;
};

/// While alive, collectives of this thread are added to `log` (scopes nest; the innermost counts).
class CommLogScope {
 public:
  explicit CommLogScope(CommLog& log);
  /// The log of the innermost scope in this thread, or null.
  static CommLog* current();

 private:
  detail::ScopedValue<CommLog*> log_;
};

namespace detail {

/// While alive, collectives of this thread are for the layer or weight of this path. The text must
/// outlive it.
class CommLabel {
 public:
  explicit CommLabel(const std::string& place);
  /// The innermost one's text; empty without any.
  static const std::string& current();

 private:
  ScopedValue<const std::string*> place_;
};

}  // namespace detail

}  // namespace tessera
