#pragma once

#include <cstdint>

namespace tessera::detail {

/// The activation that an operation applies to its own result.
enum class FusedActivation : uint8_t { none, relu, relu6 };

}  // namespace tessera::detail
