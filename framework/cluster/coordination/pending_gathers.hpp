#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/cluster/coordination/wire_format.hpp>

namespace tessera::detail {

/// One exchange in which every rank takes part: the n-th text for a key on one rank matches the
/// n-th on the others.
struct PendingGather {
  std::string key;
  /// name for errors
  std::string where;
  bool is_check = false;  ///< whether it compares a call and has no texts
  /// texts by rank; nullopt until the rank has joined
  std::vector<std::optional<std::string>> texts;
  std::chrono::steady_clock::time_point since = {};

  /// Returns the ranks that have joined (`joined`), or those that have not.
  std::vector<int> ranks(bool joined) const;
};

/// Return the key of the exchange that compares a call, and that of a gather(); they never collide.
std::string check_key(uint64_t number);
std::string text_key(const std::string& key);

/// The incomplete exchanges.
class PendingGathers {
 public:
  explicit PendingGathers(int size) : size_(static_cast<size_t>(size)), bytes_(size_) {}

  /// Adds a rank's text; returns the exchange if it is now complete. Throws BadFrame if the rank's
  /// pending texts take too much memory.
  std::optional<PendingGather> add(const PendingGather& description, int rank, std::string text);
  /// Returns the oldest exchange that lacks the rank; null: none.
  const PendingGather* waiting_for(int rank) const;
  /// Returns the oldest exchange; null: none.
  const PendingGather* oldest() const;
  /// Moves the start of every exchange by `duration`.
  void discount_pause(std::chrono::steady_clock::duration duration);

 private:
  size_t size_;
  std::vector<size_t> bytes_;  ///< bytes of pending texts by rank
  std::map<std::string, std::deque<PendingGather>> pending_;
};

}  // namespace tessera::detail
