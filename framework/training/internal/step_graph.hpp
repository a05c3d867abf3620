#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <c10/util/SmallVector.h>

#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/op_listener.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>
#include <tessera/framework/training/step_plan.hpp>

namespace tessera::detail {

/// A training step as a list of operations and side effects on numbered values: what a captured
/// step replays, without its numbers. It is recorded from a step that plans, before anything is
/// allocated, or from a real one.
struct StepGraph {
  /// A numbered value, a Variable by its number, or none.
  struct Operand {
    enum class Kind : uint8_t { value, variable, none } kind = Kind::none;
    int32_t number = 0;
    bool operator==(const Operand&) const = default;
  };
  struct Node {
    /// The operation; null for a side effect and for a number of the step, such as a seed.
    const OpInfo* info = nullptr;
    std::shared_ptr<const void> op = {};
    bool effect = false;
    std::string place = {};  ///< path of the layer, or of a gradient's weight
    c10::SmallVector<Operand, 4> in = {};
    c10::SmallVector<int32_t, 2> out = {};
    /// Inputs as the operation reads them, where their layouts differ from the values'.
    std::vector<ShardingPtr> moved = {};
    /// Values that have another sharding from here on: partial sums that were reduced.
    std::vector<std::pair<int32_t, ShardingPtr>> reduced = {};
    /// Changes of memory by the reductions between processes that a planned side effect starts and
    /// ends; gradients by their numbers.
    std::vector<PlannedReduction> reductions = {};
    /// Mesh dimensions of the collectives that an operation waited for, if a log is kept.
    std::vector<std::string> waited_for = {};
    double flops = 0;  ///< flops_of(), of all devices together
    /// The value whose gradient the node helps to compute; none in the forward pass.
    Operand gradient_of = {};
    // Members of a graph that can be run:
    std::shared_ptr<OpPlan> plan = {};                  ///< null for an operation that moves blocks
    SideEffect run = {};                                ///< the side effect
    Changes changes = {};                               ///< what it changes
    std::function<at::Tensor(int64_t step)> host = {};  ///< computes the number of a step
    std::string name() const;
  };
  using Use = MemoryUse;
  struct Value {
    ShardingPtr sharding = {};  ///< that of the operation's result
    static constexpr int32_t of_variable = -1;
    /// Number of the value whose memory this one shares, its own number, or of_variable.
    int32_t memory = 0;
    Use use = Use::activations;
  };

  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<std::string> variables;  ///< paths, by number
  std::vector<uint64_t> variable_ids;  ///< Variable::id(), by number
  /// Numbers of the batch's x, y and sample_weight, in order; -1 for an undefined one.
  std::vector<int32_t> batch;
  /// The numbers of constants, all of each tensor; only of a graph that can be run.
  std::unordered_map<int32_t, at::Tensor> constants;

  /// Returns what first differs in another graph: "node 12, einsum in block_1/up: …"; empty if
  /// nothing does. Meshes may differ in their devices.
  std::string difference(const StepGraph& other) const;
  /// Returns the floating-point operations of a step, of all devices together.
  double flops() const;
};

/// Returns the peak of each device of a mesh, without weights and slots: a value is held from the
/// operation that makes it to the last that reads it, an input that is moved for an operation
/// during it, and the memory of a reduction between processes as its bucket notes.
std::vector<StepPlan::Peak> peaks_of(const StepGraph& graph, const Mesh& mesh);

/// Returns the bytes of a tensor on every device of its mesh.
std::vector<double> bytes_by_device(const Sharding& sharding);

/// Returns the floating-point operations of an operation: two for each product that is added to a
/// sum, in products of matrices, convolutions, attention and recurrence; one for each element of
/// the results of others.
double flops_of(const OpInfo& info, const void* op, std::span<const ShardingPtr> in,
                std::span<const ShardingPtr> out);

/// Listens to a step and records its graph.
class GraphRecorder final : public OpListener {
 public:
  /// `runs`: whether the graph is to be run, for which it also has side effects, constants and
  /// plans.
  explicit GraphRecorder(const Batch& batch, bool runs = false);
  StepGraph finish();
  /// Returns the number of a value of the step. Throws StateError for another one.
  int32_t number_of(const DTensor& value) const;
  /// Why the graph cannot be run without the step's code; empty if it can.
  const std::string& why() const { return why_; }

  void constant(const DTensor& made) override;
  void input(const DTensor& made, int64_t step, std::function<at::Tensor(int64_t)> host) override;
  void ran(const OpInfo& info, const std::shared_ptr<const void>& op,
           const std::shared_ptr<OpPlan>& plan, std::span<const DTensor> in,
           std::span<const DTensor> out) override;
  void action(std::span<const DTensor> in, const SideEffect& run, Changes changes) override;
  void stop(const std::string& why) override;
  bool keeps_numbers() const override { return runs_; }
  void numbers(const DTensor& made, const at::Tensor& numbers) override;
  void gradient_of(uint64_t value) override;

 private:
  using Operand = StepGraph::Operand;
  int32_t number(const DTensor& value);
  Operand operand(const DTensor& value);
  StepGraph::Node& add(std::span<const DTensor> in);
  /// Notes the values that the side effect of the last node has moved.
  void note_reduced();

  bool runs_;
  std::string why_;
  StepGraph graph_;
  Operand gradient_of_;
  std::vector<DTensor> handles_;  ///< values by number
  std::vector<ShardingPtr> now_;  ///< their present shardings
  std::unordered_map<uint64_t, int32_t> numbers_;
  std::unordered_map<uint64_t, int32_t> variables_;
  std::vector<int32_t> reduced_by_action_;  ///< inputs of the last node, a side effect
  size_t logged_ = 0;                       ///< entries of the comm log that nodes have noted
};

}  // namespace tessera::detail
