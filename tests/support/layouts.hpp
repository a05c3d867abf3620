#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

#include <string>
#include <vector>

namespace tessera::test {

using namespace detail;

/// Returns every layout of a rank on a mesh: each mesh dimension on no axis or one, in every order.
std::vector<Layout> all_layouts(const Mesh& mesh, int64_t rank);

/// Returns every partial layout of a kind: each of all_layouts(), partial over every set of its
/// unused dimensions.
std::vector<Layout> pending_layouts(const Mesh& mesh, int64_t rank, Reduce kind);

/// Returns integers in [-8, 8] that depend only on the seed; their sums are exact in any order.
at::Tensor small_integers(const Shape& shape, int64_t seed, at::ScalarType dtype = at::kFloat);

/// A value in a layout, and its full tensor.
struct TestValue {
  DTensor value;
  at::Tensor full;
};

/// Returns a value of integers in a layout. Partial sums are uneven, and about every third is
/// absent.
TestValue test_value(const Shape& shape, const Layout& layout, int64_t seed,
                     at::ScalarType dtype = at::kFloat);

/// Returns a slice of a full tensor.
at::Tensor cut(const at::Tensor& full, const std::vector<Interval>& intervals);

/// Empty if every shard of this process is the right slice of the full tensor; else the difference.
std::string wrong_shards(const DTensor& value, const at::Tensor& full);

/// All policies; to_string() gives "per_device" and so on.
inline constexpr BlockPolicy policies[] = {BlockPolicy::per_device, BlockPolicy::per_shard,
                                           BlockPolicy::per_worker};
std::string to_string(BlockPolicy policy);

}  // namespace tessera::test
