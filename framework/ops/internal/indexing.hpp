#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/tensor/axis_item.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// One item of an index in brackets, as Python reads it.
struct IndexItem {
  enum class Kind : uint8_t { index, slice, ellipsis, new_axis };
  Kind kind = Kind::index;
  int64_t index = 0;  ///< counts from the end if negative
  /// Parts of a slice; absent ones as in Python.
  std::optional<int64_t> start = std::nullopt, stop = std::nullopt, step = std::nullopt;
};

/// Returns begin, begin + step, …: int64 (count,), replicated on a mesh.
DTensor index_range(int64_t begin, int64_t count, int64_t step, const Mesh& mesh);

/// Parses "0", "1:3", "::2", "..." or "None". Throws ConfigError, beginning with `where`, for other
/// texts.
IndexItem index_item(const AxisItem& item, const std::string& where);

/// Returns x[items]: shards of a sliced axis fetch what they lack. Throws ConfigError, beginning
/// with `where`, for more items than axes, an index that is out of range and a step of 0.
DTensor indexed(DTensor x, const std::vector<IndexItem>& items, const std::string& where);

}  // namespace tessera::detail
