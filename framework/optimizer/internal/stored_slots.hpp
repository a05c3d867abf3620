#pragma once

#include <functional>
#include <vector>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera::detail {

/// Slots that rest outside of the devices' memory between updates (LayoutMap::set_memory). An
/// update has those of two variables in memory: while one is updated, a thread writes those of the
/// one before and reads those of the next.
class StoredSlots {
 public:
  /// Whether a variable rests in a BlockStore.
  static bool rests(const Variable& slot) { return !slot.placement().rests_in.empty(); }
  /// Returns an equal value in BlockStores for a variable that rests there.
  static DTensor stored(const Variable& slot, const DTensor& value);
  /// Moves a slot to its BlockStores, with its initial value if it has none yet.
  static void put_away(const Variable& slot);
  /// Calls `update` for each of several updates with stored slots, which are in memory meanwhile.
  /// Throws FileError.
  static void update(const std::vector<VariableUpdate>& updates,
                     const std::function<void(const VariableUpdate&)>& update);

 private:
  class Staged;
};

}  // namespace tessera::detail
