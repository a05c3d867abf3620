#pragma once

#include <cstdint>
#include <string_view>

namespace tessera::detail {

/// FarmHash's Fingerprint64 of some bytes, the same on every machine; what TensorFlow's
/// string_to_hash_bucket_fast takes the remainder of.
uint64_t fingerprint64(std::string_view bytes);

}  // namespace tessera::detail
