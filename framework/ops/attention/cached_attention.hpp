#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// The options of cached_attention().
struct CachedAttentionOptions {
  std::optional<double> scale = std::nullopt;  ///< scale of the scores (default: 1 / sqrt(dim))
  /// A step attends only to the last `window` keys, its own included (default: to all before it).
  std::optional<int64_t> window = std::nullopt;
  std::vector<DTensor> masks = {};  ///< further bool masks; a step attends to what all masks allow
};

/// Computes attention of new steps to the keys and values of a cache, which has room for more steps
/// than it holds: query (batch, T, heads, dim), keys (batch, S, heads, dim), values (batch, S,
/// heads, width) -> (batch, T, heads, width). Step t of row r attends to the keys up to step
/// `positions[r] + t`; later keys are never read, so they may hold anything. A step that masks
/// forbid everything gives 0. Shared heads are those of attention(). A mask is broadcast to (batch,
/// heads, T, S).
///
/// `positions`: integers (batch), which the host reads: a detail::host_input. They are no part of
/// the plan, so one plan serves every length, and each block computes only as many scores as its
/// longest row needs.
///
/// Batch axis, heads, T and the values' width may be sharded without communication; S and dim are
/// gathered. No gradient. Throws ShapeError for shapes that do not fit and for positions whose
/// steps are not all in [0, S), ConfigError for dtypes and a window below 1.
DTensor cached_attention(const DTensor& query, const DTensor& keys, const DTensor& values,
                         const DTensor& positions, const CachedAttentionOptions& options = {});

}  // namespace tessera::ops
