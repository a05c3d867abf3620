#pragma once

#include <cstdint>
#include <vector>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/mesh/remat_rule.hpp>

namespace tessera::detail {

struct OpInfo;

/// A policy with its operations looked up.
class SavedOps {
 public:
  SavedOps() = default;
  /// Throws ConfigError, naming the nearest operation, for one that does not exist.
  explicit SavedOps(const RematPolicy& policy);
  /// Whether a tape saves the result of an operation.
  bool contains(const OpInfo& info, bool communicated) const;
  bool collectives() const { return collectives_; }

 private:
  std::vector<const OpInfo*> infos_;
  bool collectives_ = false;
};

/// A part of this thread's computation that tapes rematerialize.
struct RematRegion {
  SavedOps saved;
  /// Equal for the operations of one part; a value that leaves its part is saved. 0: values are
  /// computed again wherever they are read.
  uint64_t id = 0;
};

/// Makes the operations of this thread, while alive, one part, unless they are within a part.
class RematRegionScope {
 public:
  explicit RematRegionScope(const SavedOps& saved);
  /// The operations belong to what surrounds them, with id 0.
  RematRegionScope();

 private:
  RematRegion region_;
  ScopedValue<const RematRegion*> scoped_;
};

/// Returns the part that this thread computes; null outside of any.
const RematRegion* remat_region();

}  // namespace tessera::detail
