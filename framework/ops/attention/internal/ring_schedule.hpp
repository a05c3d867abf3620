#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {

/// The options of a ring's schedule.
struct RingOptions {
  bool causal = false;
  std::optional<int64_t> window = std::nullopt;  ///< see ops::SdpaOptions
  bool zigzag = false;  ///< member i has the first half of its own steps and the second of n-1-i's
  /// Whether keys and values also visit members that do not attend to them.
  bool visit_all = false;
};

/// The schedule of ring attention, a pure function of how the steps are sharded: which member
/// computes which tiles after which hop. Keys and values rotate to the next member; queries stay.
class RingSchedule {
 public:
  /// `intervals`: the consecutive intervals of steps that the members hold.
  RingSchedule(std::vector<Interval> intervals, const RingOptions& options);

  int64_t members() const { return static_cast<int64_t>(intervals_.size()); }
  Interval interval(int64_t member) const { return intervals_[size_t(member)]; }
  /// Returns the steps whose queries a member holds, and whose keys and values it holds before the
  /// first hop: one run, or two.
  const std::vector<Interval>& runs(int64_t member) const { return runs_[size_t(member)]; }
  /// Returns the member with which a member swaps its second half; itself if it keeps that half.
  int64_t partner(int64_t member) const;
  /// Returns the half that a member sends to its partner; empty if it keeps it.
  Interval sent_half(int64_t member) const;

  /// Returns the number of hops that keys and values take; none is needed after these.
  int64_t hops() const { return hops_; }
  /// Returns the member whose keys and values a member holds after `hop` hops.
  int64_t source(int64_t member, int64_t hop) const;
  /// A tile: indices of one of the member's runs of queries and one of the source's runs of keys.
  struct Tile {
    size_t rows = 0, keys = 0;
  };
  /// Returns the tiles that a member computes after `hop` hops.
  std::vector<Tile> tiles(int64_t member, int64_t hop) const;
  /// Returns the number of unmasked scores in these tiles: the member's work.
  int64_t scores(int64_t member, int64_t hop) const;

 private:
  bool meet(Interval rows, Interval keys) const;

  std::vector<Interval> intervals_;
  std::vector<std::vector<Interval>> runs_;
  RingOptions options_;
  int64_t hops_ = 0;
};

}  // namespace tessera::detail
