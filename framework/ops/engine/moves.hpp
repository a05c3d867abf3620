#pragma once

#include <tessera/framework/mesh/layout.hpp>
#include <tessera/framework/ops/engine/op.hpp>
#include <tessera/framework/tensor/device_memory.hpp>

namespace tessera::detail {

/// Whether a device holds less of a value in the layout `before` than in `after`. Otherwise, as for
/// partial sums, saving the value after a relayout instead of the one before saves no memory.
inline bool gathers(const Layout& before, const Layout& after) {
  const auto shards = [](const Layout& layout) {
    int64_t count = 1;
    for (int64_t axis = 0; axis < layout.rank(); ++axis) count *= layout.num_shards(axis);
    return count;
  };
  return !before.is_partial() && shards(before) > shards(after);
}

/// Whether the result of an operation, in layout `out`, shares the memory of its first input.
inline bool shares_memory(const OpInfo& info, const Layout& in, const Layout& out) {
  const std::string_view name = info.name;
  const bool moves =
      name == "reshape" || name == "transpose" || name == "relayout" || name == "stop_gradient";
  // Dimensions of one device cut nothing.
  const DimMask changed =
      (in.sharded_dims() ^ out.sharded_dims()) | (in.partial_dims() ^ out.partial_dims());
  return moves && in.mesh().size_of(changed) == 1;
}

/// Marks the result of an operation that keeps parameters as one if its input is one, and its
/// memory as that of a gathered weight or of a cast.
inline void keep_parameter(const OpInfo& info, const DTensor& in, const DTensor& out) {
  if (!info.keeps_parameter || !in.is_parameter()) return;
  out.mark_parameter();
  if (!DeviceMemory::exists()) return;
  const bool gathered =
      DeviceMemory::use_of(in) == MemoryUse::gathered || gathers(in.layout(), out.layout());
  DeviceMemory::label(out, gathered ? MemoryUse::gathered : MemoryUse::casts);
}

}  // namespace tessera::detail
