#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/ScalarType.h>

#include <tessera/framework/mesh/layout.hpp>

namespace tessera::detail {

/// Global shape and dtype of a tensor.
struct Spec {
  Shape shape;
  at::ScalarType dtype = at::kFloat;
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  bool operator==(const Spec&) const = default;
};
using Specs = std::vector<Spec>;

/// How a factor may be sharded.
/// - pass: inputs and outputs are sharded the same way.
/// - reduce: shards leave partial sums of the outputs that lack the factor.
/// - replicated: not at all.
/// - window: each output shard reads an interval of the input, given by Op::window. If no output
///   has the factor, each shard of the last input that has it reads such an interval of the others
///   and leaves a partial sum.
enum class FactorKind : uint8_t { pass, reduce, replicated, window };

/// The pending reductions that an operation passes on from its inputs.
enum class Passes : uint8_t {
  nothing,  ///< resolves every input first
  sums,     ///< linear operations: partial sums
  maxima,   ///< reductions by max: partial max
  minima,   ///< reductions by min: partial min
  all       ///< operations that only move elements: any kind
};

/// How an operation may be sharded, as data: factors name the axes of its inputs and outputs, and
/// sharding a factor over a mesh dimension shards every axis of that factor.
struct Rule {
  /// An axis without a factor, which is not sharded: e.g. extent 1, broadcast against a longer one.
  static constexpr int none = -1;

  std::vector<std::vector<int>> in;   ///< factor of each axis of each input
  std::vector<std::vector<int>> out;  ///< factor of each axis of each output
  std::vector<FactorKind> factors;
  Reduce reduce = Reduce::sum;  ///< how partial results of reduced factors combine
  Passes passes = Passes::nothing;
  /// Inputs that must all be pending over a mesh dimension for the reduction to pass; no other
  /// input may use that dimension.
  std::vector<int> through;

  /// Parses a rule such as "b m k, b k n -> b m n": one word per axis, inputs and outputs separated
  /// by commas. "!c" keeps a factor replicated, "~h" makes it a window, "." is an axis without a
  /// factor. A factor missing from every output is reduced.
  static Rule parse(std::string_view text);
  Rule& passing(Passes kinds, std::vector<int> inputs = {0});
  Rule& reducing(Reduce kind);
};

}  // namespace tessera::detail
