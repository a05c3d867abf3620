#pragma once

#include <cstdint>
#include <string_view>

namespace tessera::detail {

/// Returns FarmHash's Fingerprint64 of `bytes`, the same on every machine; TensorFlow's
/// string_to_hash_bucket_fast is its remainder.
uint64_t fingerprint64(std::string_view bytes);

}  // namespace tessera::detail
