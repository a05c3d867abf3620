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

/// What sharding a factor means. pass: inputs and outputs are cut alike. reduce: of outputs that
/// lack it shards leave addends. whole: it cannot be cut. window: each output shard reads an
/// interval of the input, which Op::window names; where no output has the factor, each shard of the
/// last input that has it does, and leaves an addend.
enum class FactorKind : uint8_t { pass, reduce, whole, window };

/// Which pending reductions an operation passes on from its inputs.
enum class Passes : uint8_t {
  nothing,  ///< resolves every input first
  sums,     ///< linear: pending sums
  maxima,   ///< reductions by max: pending max
  minima,   ///< reductions by min: pending min
  all       ///< moves numbers without computing: any kind
};

/// How an operation may be cut up, as data: the axes of its inputs and outputs are named by
/// factors, and an axis is cut over a mesh dimension by cutting its factor everywhere.
struct Rule {
  /// An axis of no factor: extent 1 against a longer one, or otherwise to be kept whole.
  static constexpr int none = -1;

  std::vector<std::vector<int>> in;   ///< factor of each axis of each input
  std::vector<std::vector<int>> out;  ///< factor of each axis of each output
  std::vector<FactorKind> factors;
  Reduce reduce = Reduce::sum;  ///< how the addends of reduced factors combine
  Passes passes = Passes::nothing;
  /// Inputs that must all be pending over a dimension for it to pass; the others must not use it.
  std::vector<int> through;

  /// The rule of a text, "b m k, b k n -> b m n": one word an axis, inputs and outputs parted by
  /// commas; "!c" keeps a factor whole, "~h" makes it a window, "." is an axis of no factor. A
  /// factor missing from every output is reduced.
  static Rule parse(std::string_view text);
  Rule& passing(Passes kinds, std::vector<int> inputs = {0});
  Rule& reducing(Reduce kind);
};

/// What propagate() decides.
struct Propagation {
  std::vector<Layout> inputs;   ///< the layout each input is brought to first
  std::vector<Layout> outputs;  ///< the layouts that follow; may be pending
  double bytes = 0;             ///< bytes each device receives for it
};

/// Chooses how to run an operation on inputs of given layouts: a pure function. Uses only mesh
/// dimensions that already cut, or are pending on, an input. If a dimension cuts a parameter
/// (bit i of `parameters`) and an activation along different factors, the parameter is gathered.
/// Then least bytes received per device; ties: fewest relayouts, the first operand's layout, factor
/// order, mesh order.
Propagation propagate(const Rule& rule, const Specs& in, const Specs& out,
                      const std::vector<Layout>& layouts, uint32_t parameters);

/// The plan as one line: "(batch, unsharded) , (unsharded, model) -> (batch, model)".
std::string to_string(const Propagation& plan);

}  // namespace tessera::detail
