#pragma once

#include <string>
#include <vector>

#include <tessera/framework/ops/engine/op.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::test {

using namespace detail;

/// A mesh of virtual CPUs with dimensions x, y, … of these sizes.
Mesh virtual_mesh(const std::vector<int64_t>& sizes);

/// "x=4", "x=2, y=2": short for texts of failures.
std::string short_name(const Mesh& mesh);

/// "(x, -) , (-, -)+sum over x".
std::string short_name(const std::vector<Layout>& layouts);

/// The same numbers for the same seed: uniform in the input's range, whole for integers, apart from
/// each other for `distinct`.
at::Tensor random_values(const SampleInput& input, uint64_t seed);

/// Every layout of a rank, and every one pending in these kinds.
std::vector<Layout> layouts_of(const Mesh& mesh, int64_t rank, const std::vector<Reduce>& kinds);

/// One layout for each input: the whole product of the lists if it has at most `limit` entries,
/// else `limit` of them, drawn with the seed.
std::vector<std::vector<Layout>> choices(const std::vector<std::vector<Layout>>& lists,
                                         size_t limit, uint64_t seed);

/// A whole tensor in a layout and the block policy in force. Of a pending layout the addends are
/// uneven, and sometimes one is absent.
DTensor make_value(const at::Tensor& whole, const Layout& layout, uint64_t seed);

/// The part of a tensor that the device at these coordinates holds.
std::vector<Interval> shard_intervals(const Layout& layout, const Shape& shape,
                                      const std::vector<int64_t>& at);

/// The whole tensor of a value, joined from its blocks without any of the runtime's relayouts.
/// Fills `wrong` when blocks do not lie as the layout says or replicas differ: on CPUs in any bit,
/// on GPUs, whose kernels do not repeat themselves, by more than rounding.
at::Tensor assemble(const DTensor& value, std::string& wrong);

/// A number that depends on all of its parts, for seeds.
uint64_t mix(uint64_t a, uint64_t b, uint64_t c = 0);
/// The hash of a text, equal on every platform.
uint64_t text_seed(const std::string& text);

}  // namespace tessera::test
