#pragma once

#include <optional>

#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::detail {

/// The attributes of an operation "pad".
struct Padding {
  int64_t axis = 0, before = 0, after = 0;
  double value = 0;
};

/// Returns the attributes of an operation "pad"; nothing for others.
std::optional<Padding> padding_of(const OpInfo& info, const void* op);

}  // namespace tessera::detail
