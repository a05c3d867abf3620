#include <tessera/framework/training/pipeline/staged_step.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/op_plan.hpp>

namespace tessera::detail {

namespace {

using Operand = StepGraph::Operand;
using Kind = Operand::Kind;

class StageDivision {
 public:
  StageDivision(const StepGraph& graph, int microbatch_dim, std::vector<int32_t> variable_stages,
                int32_t stages)
      : graph_(graph),
        rows_(DimMask{1} << microbatch_dim),
        makers_(graph.values.size(), -1),
        of_data_(graph.values.size(), true),
        all_rows_(graph.nodes.size()) {
    step_.stages = stages;
    step_.variable_stages = std::move(variable_stages);
    step_.values.resize(graph.values.size());
    step_.nodes.resize(graph.nodes.size());
    for (size_t n = 0; n < graph.nodes.size(); ++n) note_node(n);
  }

  StagedStep run() {
    while (!set_turns()) {
    }
    set_stages();
    place_data();
    split_backward();
    list_transfers();
    return std::move(step_);
  }

 private:
  const StepGraph::Node& node(size_t n) const { return graph_.nodes[n]; }

  template <class Visit>
  void each_value(size_t n, const Visit& visit) const {
    for (const Operand& in : node(n).in) {
      if (in.kind == Kind::value) visit(static_cast<size_t>(in.number));
    }
  }

  const Layout& layout(size_t value) const { return graph_.values[value].sharding->layout; }
  bool is_one_microbatch() const {
    return graph_.values.empty() || layout(0).mesh().size_of(rows_) == 1;
  }
  /// Whether a value has other rows in each microbatch.
  bool has_rows(size_t value) const { return (layout(value).sharded_dims() & rows_) != 0; }
  bool is_partial(size_t value) const { return (layout(value).partial_dims() & rows_) != 0; }
  /// Returns the axis that microbatches shard; -1 if none.
  int64_t row_axis(const Layout& layout) const {
    for (int64_t a = 0; a < layout.rank(); ++a) {
      for (int dim : layout.axis(a)) {
        if (rows_ >> dim & 1) return a;
      }
    }
    return -1;
  }

  void note_node(size_t n) {
    bool of_data = !node(n).effect;
    for (const Operand& in : node(n).in) {
      if (in.kind == Kind::variable) of_data = false;
      if (in.kind == Kind::value && !of_data_[size_t(in.number)]) of_data = false;
    }
    for (int32_t out : node(n).out) {
      makers_[size_t(out)] = static_cast<int64_t>(n);
      of_data_[size_t(out)] = of_data;
    }
  }

  /// Whether a node needs rows of several microbatches at once.
  bool joins_rows(size_t n) const {
    const StepGraph::Node& here = node(n);
    const bool relayout = here.info && here.info->only_moves;
    bool reads_rows = false, makes_rows = false;
    for (size_t i = 0; i < here.in.size(); ++i) {
      if (here.in[i].kind != Kind::value || !has_rows(size_t(here.in[i].number))) continue;
      reads_rows = true;
      const int64_t axis = row_axis(layout(size_t(here.in[i].number)));
      if (relayout && row_axis(layout(size_t(here.out[i]))) != axis) return true;
      if (here.plan && row_axis(here.plan->propagation().inputs[i]) != axis) return true;
    }
    for (int32_t out : here.out) {
      makes_rows = makes_rows || has_rows(size_t(out)) || is_partial(size_t(out));
    }
    return reads_rows && !makes_rows;
  }

  /// Makes a node and what it is computed from run once for all rows.
  void compute_all_rows(int64_t n) {
    if (n < 0 || all_rows_[size_t(n)]) return;
    all_rows_[size_t(n)] = true;
    each_value(size_t(n), [&](size_t value) { compute_all_rows(makers_[value]); });
  }

  [[noreturn]] void refuse(size_t n) const {
    const StepGraph::Node& here = node(n);
    throw ConfigError(
        here.place.empty() ? "pipeline" : here.place,
        "a layer of a pipeline computes each row of a batch without the rows of other microbatches",
        here.effect ? "a side effect on the rows" : here.name() + " over all rows",
        here.effect
            ? "keep sums over the rows in place of the rows, or use 1 microbatch"
            : "use LayerNormalization or GroupNormalization in place of BatchNormalization, or 1 "
              "microbatch");
  }

  /// Sets the turns. Returns whether no node needs what is there only after its turn; otherwise
  /// has what it needs, which is made of the data alone, computed before.
  bool set_turns() {
    const bool one = is_one_microbatch();
    std::vector<bool> late(graph_.values.size());
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const StepGraph::Node& here = node(n);
      bool of_rows = false, needs_late = false, in_turns = false;
      each_value(n, [&](size_t value) {
        of_rows = of_rows || has_rows(value);
        needs_late = needs_late || late[value];
        in_turns = in_turns || step_.values[value].in_turns;
      });
      for (int32_t out : here.out) of_rows = of_rows || has_rows(size_t(out));
      StagedStep::Node& staged = step_.nodes[n];
      staged = {};
      if (here.effect) {
        if (of_rows && !one) refuse(n);
        staged.turn = NodeTurn::after;
      } else if (all_rows_[n]) {
        staged.all_rows = true;
      } else if (of_rows || (one && in_turns)) {
        if (!one && (needs_late || joins_rows(n))) {
          make_early(n, late);
          return false;
        }
        const bool forward = here.gradient_of.kind == Kind::none;
        staged.turn = forward ? NodeTurn::forward : NodeTurn::weight_gradient;
      } else if (needs_late) {
        staged.turn = NodeTurn::after;
      }
      for (int32_t out : here.out) {
        StagedStep::Value& value = step_.values[size_t(out)];
        value.in_turns = runs_in_turns(staged.turn);
        value.summed = value.in_turns && !one && is_partial(size_t(out));
        late[size_t(out)] = value.summed || staged.turn == NodeTurn::after;
      }
    }
    return true;
  }

  void make_early(size_t n, const std::vector<bool>& late) {
    bool any = false;
    each_value(n, [&](size_t value) {
      if (!late[value]) return;
      if (!of_data_[value]) refuse(n);
      compute_all_rows(makers_[value]);
      any = true;
    });
    if (any) return;
    each_value(n, [&](size_t value) {
      if (!of_data_[value]) refuse(n);
    });
    for (const Operand& in : node(n).in) {
      if (in.kind == Kind::variable) refuse(n);
    }
    compute_all_rows(static_cast<int64_t>(n));
  }

  int32_t stage_of(const Operand& operand) const {
    if (operand.kind == Kind::variable) return step_.variable_stages[size_t(operand.number)];
    return operand.kind == Kind::value ? step_.values[size_t(operand.number)].stage : -1;
  }

  void set_stages() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      int32_t stage = stage_of(node(n).gradient_of);
      for (const Operand& in : node(n).in) {
        if (stage_of(node(n).gradient_of) < 0) stage = std::max(stage, stage_of(in));
      }
      set_stage(n, stage);
    }
  }

  void set_stage(size_t n, int32_t stage) {
    step_.nodes[n].stage = stage;
    for (int32_t out : node(n).out) step_.values[size_t(out)].stage = stage;
  }

  /// Gives nodes that no variable takes part in to the first stage that reads their results.
  void place_data() {
    std::vector<int32_t> first(graph_.values.size(), step_.stages);
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      if (step_.nodes[n].stage < 0) {
        int32_t stage = step_.stages;
        for (int32_t out : node(n).out) stage = std::min(stage, first[size_t(out)]);
        set_stage(n, stage == step_.stages ? 0 : stage);
      }
      if (node(n).effect) continue;
      each_value(
          n, [&](size_t value) { first[value] = std::min(first[value], step_.nodes[n].stage); });
    }
  }

  /// Tells the gradients of earlier values from those of weights. The gradient of a value that
  /// microbatches have rows of is read on the way to that of another such value, or not.
  void split_backward() {
    std::vector<std::vector<size_t>> readers(graph_.values.size());
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      each_value(n, [&](size_t value) { readers[value].push_back(n); });
    }
    const auto leads_on = [&](size_t n, size_t reader) {
      if (step_.nodes[reader].turn == NodeTurn::input_gradient) return true;
      const Operand &mine = node(n).gradient_of, &theirs = node(reader).gradient_of;
      if (step_.nodes[reader].turn != NodeTurn::weight_gradient || theirs.kind != Kind::value)
        return false;
      const StagedStep::Value& value = step_.values[size_t(theirs.number)];
      return theirs != mine && value.in_turns && !value.summed;
    };
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      if (step_.nodes[n].turn != NodeTurn::weight_gradient) continue;
      for (int32_t out : node(n).out) {
        for (size_t reader : readers[size_t(out)]) {
          if (leads_on(n, reader)) step_.nodes[n].turn = NodeTurn::input_gradient;
        }
      }
    }
  }

  void list_transfers() {
    std::set<std::tuple<Kind, int32_t, int32_t>> known;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (node(n).effect) continue;
      const auto [turn, to, all_rows] = step_.nodes[n];
      for (const Operand& in : node(n).in) {
        const int32_t from = stage_of(in);
        if (from < 0 || from == to || !known.insert({in.kind, in.number, to}).second) continue;
        const bool in_turns = in.kind == Kind::value && step_.values[size_t(in.number)].in_turns &&
                              !step_.values[size_t(in.number)].summed;
        step_.transfers.push_back({in, from, to, turn, in_turns});
      }
    }
  }

  const StepGraph& graph_;
  const DimMask rows_;
  StagedStep step_;
  std::vector<int64_t> makers_;  ///< by value: the node that makes it, or -1
  std::vector<bool> of_data_;    ///< by value: whether it is computed without variables
  std::vector<bool> all_rows_;   ///< by node: whether it computes all rows once
};

}  // namespace

StagedStep divide_into_stages(const StepGraph& graph, int microbatch_dim,
                              std::vector<int32_t> variable_stages, int32_t stages) {
  return StageDivision(graph, microbatch_dim, std::move(variable_stages), stages).run();
}

}  // namespace tessera::detail
