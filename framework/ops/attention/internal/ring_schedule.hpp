#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {

/// What the steps of a ring may attend to.
struct RingForm {
  bool causal = false;
  std::optional<int64_t> window = std::nullopt;  ///< as in ops::AttentionForm
  bool zigzag = false;  ///< member i has the first half of its own steps, and the second of n-1-i
  bool every = false;   ///< keys and values pass every member, whether or not it attends to them
};

/// Who computes what and when in ring attention: a pure function of how the steps are cut. Keys and
/// values go from each member to the next one, and meet the queries that stay.
class RingSchedule {
 public:
  /// `parts`: the steps of each member, one behind the other.
  RingSchedule(std::vector<Interval> parts, const RingForm& form);

  int64_t members() const { return static_cast<int64_t>(parts_.size()); }
  Interval part(int64_t member) const { return parts_[size_t(member)]; }
  /// The steps whose queries a member has, and whose keys and values it has first: one run, or two.
  const std::vector<Interval>& runs(int64_t member) const { return runs_[size_t(member)]; }
  /// The member that a member swaps its second half with; itself where it keeps it.
  int64_t partner(int64_t member) const;
  /// The half that a member gives its partner; nothing where it keeps it.
  Interval given(int64_t member) const;

  /// How often keys and values go on, after which nobody attends to them.
  int64_t hops() const { return hops_; }
  /// The member whose keys and values one has after some hops.
  int64_t source(int64_t member, int64_t hop) const;
  /// A run of the member's, and one of those that it has of the source's.
  struct Pair {
    size_t rows = 0, keys = 0;
  };
  /// What a member computes after some hops.
  std::vector<Pair> pairs(int64_t member, int64_t hop) const;
  /// Pairs of a step and another that it attends to among them: the work of it.
  int64_t scores(int64_t member, int64_t hop) const;

 private:
  bool meet(Interval rows, Interval keys) const;

  std::vector<Interval> parts_;
  std::vector<std::vector<Interval>> runs_;
  RingForm form_;
  int64_t hops_ = 0;
};

}  // namespace tessera::detail
