#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/ops/engine/rule.hpp>

namespace tessera::detail {

/// The result of propagate().
struct Propagation {
  std::vector<Layout> inputs;   ///< the layout that each input is resharded to first
  std::vector<Layout> outputs;  ///< the resulting layouts; may be pending
  double bytes = 0;             ///< bytes that each device receives for the resharding
};

/// Chooses the layouts in which an operation runs, from the layouts of its inputs; a pure function.
/// Uses only mesh dimensions over which an input is already sharded or pending. If a dimension
/// shards a parameter (bit i of `parameters`) and an activation along different factors, the
/// parameter is gathered. Among the remaining choices, minimizes the bytes received per device;
/// ties: fewest relayouts, the first operand's layout, factor order, mesh order.
Propagation propagate(const Rule& rule, const Specs& in, const Specs& out,
                      const std::vector<Layout>& layouts, uint32_t parameters);

/// Formats the plan as one line: "(batch, unsharded) , (unsharded, model) -> (batch, model)".
std::string to_string(const Propagation& plan);

}  // namespace tessera::detail
