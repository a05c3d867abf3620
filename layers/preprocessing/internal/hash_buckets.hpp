#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

/// Buckets of texts and whole numbers as TensorFlow's string_to_hash_bucket_fast,
/// string_to_hash_bucket_strong and sparse.cross_hashed give them.
namespace tessera::detail {

/// Key of the strong hash: none for the fast one, or two numbers.
using HashSalt = std::vector<int64_t>;

/// The bucket of a text, in [0, buckets): FarmHash's Fingerprint64, or SipHash-2-4 with a salt.
int64_t hash_bucket(std::string_view text, int64_t buckets, const HashSalt& salt);
/// The bucket of a number's decimal digits.
int64_t hash_bucket(int64_t number, int64_t buckets, const HashSalt& salt);
/// The bucket of several numbers at once, in their order.
int64_t cross_bucket(std::span<const uint64_t> numbers, int64_t buckets);

/// The bucket of each int64 number, computed on the host. No communication.
DTensor hash_buckets(const DTensor& numbers, int64_t buckets, const HashSalt& salt);
/// The bucket of the numbers that stand in one place of int64 tensors of one shape.
DTensor cross_buckets(const std::vector<DTensor>& numbers, int64_t buckets);

}  // namespace tessera::detail
