#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/cluster/coordination/wire_format.hpp>

namespace tessera::detail {

/// One exchange in which every rank takes part: the n-th text of a key on one rank meets the n-th
/// on the others.
struct Round {
  std::string key;
  /// How errors name it.
  std::string where;
  bool is_check = false;  ///< whether it checks a call and has no texts
  /// What the ranks gave; absent until the rank has come.
  std::vector<std::optional<std::string>> texts;
  std::chrono::steady_clock::time_point since = {};

  /// Ranks that are there, or that are not.
  std::vector<int> ranks(bool there) const;
};

/// Key of the exchange that compares a call; texts have keys of their own kind.
std::string check_key(uint64_t number);
std::string text_key(const std::string& key);

/// The exchanges under way.
class ControlRounds {
 public:
  explicit ControlRounds(int size) : size_(static_cast<size_t>(size)), bytes_(size_) {}

  /// Takes a rank's text; returns the exchange if it is complete. Throws BadFrame if texts of this
  /// rank that wait for others take too much memory.
  std::optional<Round> add(const Round& about, int rank, std::string text);
  /// The oldest exchange that lacks the rank; null if there is none.
  const Round* waiting_for(int rank) const;
  /// The oldest exchange; null if there is none.
  const Round* oldest() const;
  /// Takes every exchange for one that began that much later.
  void discount_pause(std::chrono::steady_clock::duration duration);

 private:
  size_t size_;
  std::vector<size_t> bytes_;  ///< held, by rank
  std::map<std::string, std::deque<Round>> rounds_;
};

}  // namespace tessera::detail
