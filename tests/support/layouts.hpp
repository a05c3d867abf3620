#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

#include <string>
#include <vector>

namespace tessera::test {

using namespace detail;

/// Every layout of a rank on a mesh: each mesh dimension on no axis or one, in every order.
std::vector<Layout> all_layouts(const Mesh& mesh, int64_t rank);

/// Every pending layout of a kind: each of all_layouts(), pending over every set of the dimensions
/// that it leaves free.
std::vector<Layout> pending_layouts(const Mesh& mesh, int64_t rank, Reduce kind);

/// Whole numbers in [-8, 8], the same for the same seed, so that sums are exact in any order.
at::Tensor whole_numbers(const Shape& shape, int64_t seed, at::ScalarType dtype = at::kFloat);

/// A value in a layout, and the whole of it.
struct TestValue {
  DTensor value;
  at::Tensor whole;
};

/// A value of whole numbers in a layout. A pending one is split unevenly, and about every third
/// addend is absent.
TestValue test_value(const Shape& shape, const Layout& layout, int64_t seed,
                     at::ScalarType dtype = at::kFloat);

/// Part of a whole tensor.
at::Tensor cut(const at::Tensor& whole, const std::vector<Interval>& intervals);

/// Empty if every shard of this process is the right part of `whole`; else what is wrong.
std::string wrong_shards(const DTensor& value, const at::Tensor& whole);

/// The policies, and "per_device" and so on.
inline constexpr BlockPolicy policies[] = {BlockPolicy::per_device, BlockPolicy::per_shard,
                                           BlockPolicy::per_worker};
std::string to_string(BlockPolicy policy);

}  // namespace tessera::test
