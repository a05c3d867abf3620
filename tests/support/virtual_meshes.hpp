#pragma once

#include <string>
#include <vector>

#include <tessera/framework/ops/engine/op.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::test {

using namespace detail;

/// Returns a mesh of virtual CPUs with dimensions x, y, … of these sizes.
Mesh virtual_mesh(const std::vector<int64_t>& sizes);

/// Returns "x=4", "x=2, y=2": short for failure texts.
std::string short_name(const Mesh& mesh);

/// Returns "(x, -) , (-, -)+sum over x".
std::string short_name(const std::vector<Layout>& layouts);

/// Returns numbers that depend only on the seed: uniform in the input's range, integral for
/// integers, distinct for `distinct`.
at::Tensor random_values(const SampleInput& input, uint64_t seed);

/// Returns every layout of a rank, and every one partial in these kinds.
std::vector<Layout> layouts_of(const Mesh& mesh, int64_t rank, const std::vector<Reduce>& kinds);

/// Returns one layout for each input: the full product of the lists if it has at most `limit`
/// entries, else `limit` random ones drawn with the seed.
std::vector<std::vector<Layout>> choices(const std::vector<std::vector<Layout>>& lists,
                                         size_t limit, uint64_t seed);

/// Packs a full tensor in a layout under the current block policy. Partial values are uneven, and
/// sometimes one is absent.
DTensor make_value(const at::Tensor& full, const Layout& layout, uint64_t seed);

/// Returns the intervals of the device at these coordinates.
std::vector<Interval> shard_intervals(const Layout& layout, const Shape& shape,
                                      const std::vector<int64_t>& at);

/// Returns the full tensor of a value, joined from its blocks without the runtime's relayouts.
/// Fills `wrong` if blocks are not where the layout says or replicas differ: on CPUs in any bit, on
/// GPUs, whose kernels are not deterministic, by more than rounding.
at::Tensor assemble(const DTensor& value, std::string& wrong);

/// Mixes its arguments into a seed.
uint64_t mix(uint64_t a, uint64_t b, uint64_t c = 0);
/// Hashes a text, equally on every platform.
uint64_t text_seed(const std::string& text);

}  // namespace tessera::test
