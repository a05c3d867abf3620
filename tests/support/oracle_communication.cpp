#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/oracle_local.hpp"
#include "tests/support/oracle_run.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace tessera::test {

using namespace detail;

namespace {

constexpr int64_t unsharded_axis = -1;

/// The sharded axis of each tensor, or unsharded_axis.
using ShardedAxes = std::vector<int64_t>;

/// Returns every combination of one entry of each list.
std::vector<ShardedAxes> combinations(const std::vector<std::vector<int64_t>>& lists) {
  std::vector<ShardedAxes> all = {{}};
  for (const std::vector<int64_t>& list : lists) {
    std::vector<ShardedAxes> longer;
    for (const ShardedAxes& cuts : all) {
      for (int64_t entry : list) {
        longer.push_back(cuts);
        longer.back().push_back(entry);
      }
    }
    all = std::move(longer);
  }
  return all;
}

Ranges shard_ranges(const Shape& shape, int64_t axis, int64_t shards, int64_t shard) {
  Ranges ranges = full_range(shape);
  if (axis != unsharded_axis) {
    ranges[size_t(axis)] = shard_interval(shape[size_t(axis)], shards, shard);
  }
  return ranges;
}

/// Whether an input consists of integers without factors, such as a seed, which cannot be sharded.
bool is_number(const OracleCase& c, size_t input) {
  if (c.info->moves_blocks || at::isFloatingType(c.inputs[input].dtype)) return false;
  Specs specs;
  for (const SampleInput& in : c.inputs) specs.push_back({in.shape, in.dtype});
  const std::vector<int> factors = c.info->rule(c.op.get(), specs).in[input];
  return std::all_of(factors.begin(), factors.end(), [](int f) { return f == Rule::none; });
}

/// Decides by brute force whether shards can be computed independently.
class BruteForce {
 public:
  /// Several references, so that agreement is no coincidence.
  BruteForce(const OracleCase& c, const std::vector<Reference>& references, int64_t shards)
      : case_(c), references_(references), ref_(references[0]), shards_(shards) {}

  /// Whether some way to slice replicated inputs and to shard or reduce the outputs is right.
  bool independent(const ShardedAxes& input_axes) const {
    std::vector<std::vector<int64_t>> inputs, outputs;
    for (size_t i = 0; i < input_axes.size(); ++i) {
      inputs.push_back({input_axes[i]});
      for (int64_t a = 0; input_axes[i] == unsharded_axis && a < ref_.in[i].dim(); ++a) {
        if (ref_.in[i].size(a) >= shards_ && !is_number(case_, i)) inputs[i].push_back(a);
      }
    }
    for (const at::Tensor& out : ref_.out) {
      outputs.push_back({unsharded_axis});
      for (int64_t a = 0; a < out.dim() && !fixed_output(); ++a) outputs.back().push_back(a);
    }
    for (const ShardedAxes& in : combinations(inputs)) {
      for (int64_t first : outputs[0]) {
        std::vector<std::vector<int64_t>> open = outputs;
        open[0] = {first};
        if (std::all_of(references_.begin(), references_.end(),
                        [&](const Reference& ref) { return right(ref, in, open); })) {
          return true;
        }
      }
    }
    return false;
  }

 private:
  /// Whether the operation's samples request a replicated result.
  bool fixed_output() const {
    return case_.info->name == "relayout" || case_.info->name == "copy_to_mesh";
  }

  /// Computes one shard, with the first output and others of its shape sharded along `first`.
  /// forward sees the interval of the first output.
  std::vector<at::Tensor> run(const Reference& ref, const ShardedAxes& in, int64_t first,
                              int64_t shard) const {
    std::vector<Ranges> ranges, out_ranges;
    for (size_t i = 0; i < in.size(); ++i) {
      ranges.push_back(shard_ranges(ref.in[i].sizes().vec(), in[i], shards_, shard));
    }
    for (const at::Tensor& out : ref.out) {
      const int64_t axis = out.sizes() == ref.out[0].sizes() ? first : unsharded_axis;
      out_ranges.push_back(shard_ranges(out.sizes().vec(), axis, shards_, shard));
    }
    if (!case_.info->moves_blocks) {
      const Tensors results = run_local(*case_.info, case_.op.get(), ref.in, ranges, out_ranges);
      // The number of outputs depends on the sharded axis.
      if (results.size() != ref.out.size()) throw std::length_error("other outputs");
      return {results.begin(), results.end()};
    }
    std::vector<at::Tensor> results;
    for (size_t o = 0; o < ref.out.size(); ++o) {
      Shape shape;
      for (Interval range : out_ranges[o]) shape.push_back(range.size());
      results.push_back(cut(ref.in[o], ranges[o]).reshape(shape));
    }
    return results;
  }

  /// Whether some way to shard each output remains; removes those that are wrong.
  bool right(const Reference& ref, const ShardedAxes& in,
             std::vector<std::vector<int64_t>>& open) const {
    std::vector<std::vector<at::Tensor>> results;
    try {
      for (int64_t shard = 0; shard < shards_; ++shard) {
        results.push_back(run(ref, in, open[0][0], shard));
      }
    } catch (const std::exception&) {
      return false;
    }
    for (size_t o = 0; o < open.size(); ++o) {
      std::vector<at::Tensor> parts;
      for (const std::vector<at::Tensor>& result : results) parts.push_back(result[o]);
      std::erase_if(open[o], [&](int64_t axis) {
        return !(axis == unsharded_axis ? combines(parts, ref.out[o])
                                        : joins(parts, axis, ref.out[o]));
      });
      if (open[o].empty()) return false;
    }
    return true;
  }

  static bool equal(const at::Tensor& a, const at::Tensor& b) {
    return difference(a, b, 1e-9, 1e-9).empty();
  }

  static bool joins(const std::vector<at::Tensor>& parts, int64_t axis,
                    const at::Tensor& expected) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const Interval own = shard_interval(expected.size(axis), int64_t(parts.size()), int64_t(i));
      if (!equal(parts[i], expected.narrow(axis, own.lo, own.size()))) return false;
    }
    return true;
  }

  /// Whether the blocks are replicas of the expected value, or partial values of a reduction to it.
  static bool combines(const std::vector<at::Tensor>& parts, const at::Tensor& expected) {
    const bool replicas = std::all_of(parts.begin(), parts.end(),
                                      [&](const at::Tensor& p) { return equal(p, expected); });
    if (replicas) return true;
    for (const at::Tensor& part : parts) {
      if (part.sizes() != expected.sizes()) return false;
    }
    for (Reduce kind : {Reduce::sum, Reduce::max, Reduce::min}) {
      if (kind == Reduce::sum && expected.scalar_type() == at::kBool) continue;
      if (equal(reduce_all(kind, parts), expected)) return true;
    }
    return false;
  }

  const OracleCase& case_;
  const std::vector<Reference>& references_;
  const Reference& ref_;
  int64_t shards_;
};

/// Returns the axis that each layout shards; nothing if none is sharded or a shard would be empty,
/// where no rule could be wrong.
std::optional<ShardedAxes> sharded_axes_of(const OracleCase& c, const Reference& ref,
                                           const std::vector<Layout>& layouts) {
  ShardedAxes cuts;
  bool any = false;
  for (size_t i = 0; i < layouts.size(); ++i) {
    cuts.push_back(unsharded_axis);
    for (int64_t a = 0; a < layouts[i].rank(); ++a) {
      if (layouts[i].axis(a).empty()) continue;
      if (ref.in[i].size(a) < layouts[i].num_shards(a) || is_number(c, i)) return std::nullopt;
      cuts[i] = a;
      any = true;
    }
  }
  return any ? std::optional(cuts) : std::nullopt;
}

/// Returns how many assignments of layouts to try: fewer for operations of many inputs, for each of
/// which BruteForce tries all axes of all inputs.
size_t communication_limit(const Reference& ref) {
  constexpr size_t tries = 20'000;
  size_t of_one_assignment = 1;
  for (const at::Tensor& in : ref.in) of_one_assignment *= size_t(1 + in.dim());
  return limit_of_oracle(std::clamp<size_t>(tries / of_one_assignment, 16, 160));
}

/// Returns the case with other numbers.
Reference other_numbers(const OracleCase& c, uint64_t seed) {
  const c10::InferenceMode inference;
  Reference ref;
  ref.in = random_inputs(c, seed);
  ref.out = c.reference(ref.in);
  return ref;
}

}  // namespace

Failures check_communication(const OracleCase& c, const Reference& reference, const Mesh& mesh) {
  const BlockPolicyScope scope(BlockPolicy::per_shard);
  Failures failures;
  std::vector<std::vector<Layout>> lists;
  for (const at::Tensor& in : reference.in) lists.push_back(all_layouts(mesh, in.dim()));
  std::vector<Reference> references = {reference};
  for (uint64_t seed : {1, 2, 3}) references.push_back(other_numbers(c, seed));
  const BruteForce shards(c, references, mesh.size());
  for (const std::vector<Layout>& layouts :
       choices(lists, communication_limit(reference), text_seed(c.name))) {
    const std::optional<ShardedAxes> cuts = sharded_axes_of(c, reference, layouts);
    if (!cuts) continue;
    const bool independent = shards.independent(*cuts);
    const bool silent = measure_bytes(c, reference, layouts).forward == 0;
    if (silent == independent) continue;
    failures.push_back(str(c.name, " on ", short_name(mesh), ", ", short_name(layouts),
                           independent ? ": missing rule, shards can do without communication"
                                       : ": wrong rule, shards cannot do without communication"));
  }
  return failures;
}

}  // namespace tessera::test
