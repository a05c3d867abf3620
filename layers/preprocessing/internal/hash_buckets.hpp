#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

/// Hash buckets of texts and integers, equal to those of TensorFlow's string_to_hash_bucket_fast,
/// string_to_hash_bucket_strong and sparse.cross_hashed.
namespace tessera::detail {

/// Key of the strong hash (two numbers); empty for the fast hash.
using HashSalt = std::vector<int64_t>;

/// Returns the bucket of a text in [0, buckets), by FarmHash's Fingerprint64, or SipHash-2-4 with a
/// salt.
int64_t hash_bucket(std::string_view text, int64_t buckets, const HashSalt& salt);
/// Returns the bucket of a number's decimal digits.
int64_t hash_bucket(int64_t number, int64_t buckets, const HashSalt& salt);
/// Returns the bucket of several numbers hashed in order.
int64_t cross_bucket(std::span<const uint64_t> numbers, int64_t buckets);

/// Returns the bucket of each int64 number, computed on the host. No communication.
DTensor hash_buckets(const DTensor& numbers, int64_t buckets, const HashSalt& salt);
/// Returns, element by element, the bucket of the combined numbers of int64 tensors of one shape.
DTensor cross_buckets(const std::vector<DTensor>& numbers, int64_t buckets);

}  // namespace tessera::detail
