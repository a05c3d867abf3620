#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/nn/variable.hpp>
#include <tessera/framework/ops/engine/op_plan.hpp>
#include <tessera/framework/pipeline/pipeline_schedule.hpp>
#include <tessera/framework/tensor/internal/transfer.hpp>
#include <tessera/framework/training/pipeline/pipeline_meshes.hpp>
#include <tessera/framework/training/pipeline/staged_step.hpp>

namespace tessera::detail {

/// A step that is run as a pipeline: what PipelineStep is made from.
struct PipelineParts {
  StepGraph graph;                  ///< that of a step planned on PipelineMeshes::rows()
  std::vector<int32_t> results;     ///< numbers of the values that the step returns
  std::vector<Variable> variables;  ///< by number
  StagedStep staged;
  PipelineMeshes meshes;
  PipelineSchedule schedule;  ///< one that check_schedule() accepts
};

/// Runs the graph of a step as a pipeline: what needs no rows once before, then the actions of a
/// schedule, each all nodes of one turn of a stage for one microbatch, then once what needs sums
/// over all microbatches: reductions between devices, the update, metrics.
///
/// All processes go through the actions of all devices in one order, in which each device's are
/// those of the schedule. A process computes the actions of its own devices, and begins the
/// transfers of the others' at the same place of that order, so that none waits before it has to.
class PipelineStep {
 public:
  explicit PipelineStep(PipelineParts parts);

  /// Runs the step on a batch on PipelineMeshes::rows() and returns its results, on the mesh of the
  /// weights of their stage, or of its rows; a process that lacks the stage gets them without
  /// blocks. Random draws follow `step`. Collective. Throws what operations and
  /// side effects throw.
  std::vector<DTensor> run(const Batch& batch, int64_t step);

  const PipelineParts& parts() const { return parts_; }

 private:
  using Operand = StepGraph::Operand;
  /// A value at a stage whose nodes read it for each microbatch.
  struct Slot {
    Operand value;
    int32_t stage = 0;
    int32_t readers = 0;   ///< nodes and transfers that read it, for each microbatch
    bool is_home = false;  ///< whether the stage makes it for each microbatch
  };
  /// A transfer for each microbatch, begun by the action that makes the value.
  struct Crossing {
    size_t from = 0, to = 0;  ///< slots
    size_t maker = 0;         ///< node
  };
  /// The nodes of an action, in order, and the transfers that follow.
  struct Work {
    std::vector<size_t> nodes;
    std::vector<Crossing> crossings;
  };
  struct Held {
    DTensor value;
    std::unique_ptr<ValueTransfer> arriving = {};
    int32_t readers = 0;
  };
  /// Plans of a node: one if it runs once, else one for each microbatch.
  using Plans = std::vector<std::shared_ptr<OpPlan>>;

  /// Lists what the operations of a stage read for each microbatch.
  void add_slots();
  size_t slot(const Operand& value, int32_t stage);
  /// Lists what each action does, and the transfers after it.
  void add_work();
  int32_t stage_of(const Operand& operand) const;
  bool is_in_turns(const Operand& operand) const;

  void begin(const Batch& batch);
  void run_once(NodeTurn turn, int64_t step);
  void perform_effect(const StepGraph::Node& node);
  void run_action(const PipelineAction& action);
  void run_in_turn(size_t n, int64_t microbatch);
  void begin_crossing(const Crossing& crossing, int64_t microbatch);
  void end_turns();
  std::vector<DTensor> compute(size_t n, const std::vector<DTensor>& in, const Mesh& mesh,
                               size_t turn);

  /// Returns a value without blocks, of a stage that another process computes.
  DTensor elsewhere(int32_t number, const Mesh& mesh) const;
  /// Whether a value that is made once has the rows of all microbatches, or was made of them.
  bool is_of_rows(const Operand& operand) const;
  /// Returns a value that is made once, or a total, at a stage: on the mesh of its weights, or on
  /// that of its rows. All processes call it for what moves to another stage.
  DTensor at_stage(const Operand& operand, int32_t stage, bool all_rows);
  DTensor moved(const Operand& operand, int32_t stage, const Mesh& mesh);
  /// Returns the value of a slot for a microbatch, and counts the reader.
  DTensor read(size_t slot, int64_t microbatch);
  /// Returns a value that is made once for the nodes of a microbatch.
  DTensor narrowed(const Operand& operand, int32_t stage, int64_t microbatch);
  /// Adds a microbatch's partial sum to the total.
  void add_to_total(int32_t number, const DTensor& value);
  DTensor result(int32_t number);

  PipelineParts parts_;
  std::vector<Slot> slots_;
  std::unordered_map<uint64_t, size_t> slot_of_;  ///< by value and stage
  std::vector<std::vector<size_t>> node_slots_;   ///< by node that runs in turns and operand
  std::vector<std::vector<Work>> work_;           ///< by stage and kind of action
  std::vector<PipelineAction> order_;             ///< the actions of all devices
  std::vector<Plans> plans_;                      ///< by node
  std::vector<bool> is_kept_;  ///< by value: whether it is read after the microbatches

  // During a step:
  std::vector<DTensor> once_;                     ///< by value: made once, or a total
  std::vector<Blocks> totals_;                    ///< by value: so far
  std::unordered_map<uint64_t, DTensor> copies_;  ///< copies on other meshes
  std::vector<std::vector<Held>> held_;           ///< by microbatch and slot
  std::vector<std::vector<DTensor>> kept_;        ///< by value and microbatch
};

/// Returns the actions of all devices in one order: each device's in the schedule's, and none
/// before one whose result it needs.
std::vector<PipelineAction> merged_actions(const PipelineSchedule& schedule);

}  // namespace tessera::detail
