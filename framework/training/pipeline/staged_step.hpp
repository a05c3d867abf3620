#pragma once

#include <cstdint>
#include <vector>

#include <tessera/framework/training/internal/step_graph.hpp>

namespace tessera::detail {

/// When a pipeline runs a node of a step.
enum class NodeTurn : uint8_t {
  before,           ///< once, before the microbatches: casts of weights, counts of the data alone
  forward,          ///< for each microbatch, in the forward pass
  input_gradient,   ///< for each microbatch, what leads to the gradients of earlier values
  weight_gradient,  ///< for each microbatch, what leads to the gradients of weights alone
  after             ///< once, after the microbatches: what reads sums over all of them
};

/// Whether a node runs for each microbatch.
inline bool runs_in_turns(NodeTurn turn) {
  return turn != NodeTurn::before && turn != NodeTurn::after;
}

/// A step that a pipeline runs: the stage and turn of each node of its graph.
struct StagedStep {
  struct Node {
    NodeTurn turn = NodeTurn::before;
    int32_t stage = 0;
    /// Whether a node that runs once computes all rows of the batch.
    bool all_rows = false;
  };
  struct Value {
    /// Stage that makes the value; -1 for a part of the batch and for a constant, which are
    /// everywhere.
    int32_t stage = -1;
    bool in_turns = false;  ///< made for each microbatch
    bool summed = false;    ///< a partial sum of a microbatch; those of all are added up
  };
  /// A value that another stage reads: once, or once for each microbatch.
  struct Transfer {
    StepGraph::Operand value;
    int32_t from = 0, to = 0;
    NodeTurn turn = NodeTurn::before;  ///< that of the first node that reads it there
    bool in_turns = false;
    bool operator==(const Transfer&) const = default;
  };

  std::vector<Node> nodes;               ///< by number in the graph
  std::vector<Value> values;             ///< by number
  std::vector<int32_t> variable_stages;  ///< by number
  std::vector<Transfer> transfers;       ///< in the order of the nodes that read them
  int32_t stages = 0;
};

/// Divides a step into stages and turns. In the graph, dimension `microbatch_dim` of the mesh
/// shards the rows of the batch as microbatches are to. `variable_stages` has the stage of each
/// variable of the graph.
///
/// A node of the forward pass is on the latest stage of its operands, one of the backward pass on
/// that of the value whose gradient it helps to compute. A value that no variable takes part in is
/// made by the first stage that reads it, or, where it needs all rows, once before the
/// microbatches. Throws ConfigError, naming the layer, for an operation that reads other rows than
/// those of its microbatch, and for a side effect on the rows.
StagedStep divide_into_stages(const StepGraph& graph, int microbatch_dim,
                              std::vector<int32_t> variable_stages, int32_t stages);

}  // namespace tessera::detail
