#pragma once

#include <span>

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

/// Returns the number of the input of which a result is a part, or which it is, moved.
inline size_t input_of_result(const OpInfo& info, size_t result) {
  return info.only_moves ? result : 0;
}

/// Whether the result of an operation, in layout `out`, shares the memory of input_of_result().
inline bool shares_memory(const OpInfo& info, const Layout& in, const Layout& out) {
  const std::string_view name = info.name;
  const bool moves =
      name == "reshape" || name == "transpose" || name == "relayout" || name == "stop_gradient";
  // Dimensions of one device cut nothing.
  const DimMask changed =
      (in.sharded_dims() ^ out.sharded_dims()) | (in.partial_dims() ^ out.partial_dims());
  return moves && in.mesh().size_of(changed) == 1;
}

/// Marks the results of an operation that keeps parameters as such where their inputs are, and
/// their memory as that of gathered weights or of casts.
inline void keep_parameters(const OpInfo& info, std::span<const DTensor> in,
                            std::span<const DTensor> out) {
  if (!info.keeps_parameter) return;
  for (size_t o = 0; o < out.size(); ++o) {
    const DTensor& from = in[input_of_result(info, o)];
    if (!from.is_parameter()) continue;
    out[o].mark_parameter();
    if (!DeviceMemory::exists()) continue;
    const bool gathered = DeviceMemory::use_of(from) == MemoryUse::gathered ||
                          gathers(from.layout(), out[o].layout());
    DeviceMemory::label(out[o], gathered ? MemoryUse::gathered : MemoryUse::casts);
  }
}

}  // namespace tessera::detail
