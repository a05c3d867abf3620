#include <tessera/framework/training/internal/step_graph.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/ops/engine/moves.hpp>
#include <tessera/framework/ops/engine/op_plan.hpp>

namespace tessera::detail {

namespace {

constexpr const char* effect_name = "a side effect";

std::string text_of(const Sharding& sharding) {
  return str(dtype_name(sharding.dtype), " ", to_string(sharding.shape), " ",
             sharding.layout.describe());
}

/// Returns the numbers of a node's operands and results: "3 W1 -> 4".
std::string numbers_of(const StepGraph::Node& node) {
  std::string text;
  for (const StepGraph::Operand& in : node.in) {
    const bool variable = in.kind == StepGraph::Operand::Kind::variable;
    text += str(variable ? "W" : "", in.number, " ");
  }
  text += "->";
  for (int32_t out : node.out) text += str(" ", out);
  return text;
}

}  // namespace

std::string StepGraph::Node::name() const {
  if (effect) return effect_name;
  return info ? std::string(info->name) : "a number of the step";
}

double StepGraph::flops() const {
  double sum = 0;
  for (const Node& node : nodes) sum += node.flops;
  return sum;
}

std::string StepGraph::difference(const StepGraph& other) const {
  const auto difference_of = [&](const Node& mine, const Node& theirs) -> std::string {
    if (mine.name() != theirs.name()) return theirs.name() + " instead";
    if (mine.place != theirs.place) return "in " + theirs.place;
    if (mine.in != theirs.in || mine.out != theirs.out) {
      return str("operands ", numbers_of(mine), ", ", numbers_of(theirs));
    }
    // The layouts of operations that only move values are those of their results.
    const bool comparable = mine.op && !mine.info->moves_blocks;
    if (comparable && !mine.info->equal(mine.op.get(), theirs.op.get())) return "other options";
    for (int32_t number : mine.out) {
      const std::string here = text_of(*values[size_t(number)].sharding),
                        there = text_of(*other.values[size_t(number)].sharding);
      if (here != there) return here + ", " + there;
    }
    if (mine.reduced.size() != theirs.reduced.size()) return "another number of reductions";
    for (size_t r = 0; r < mine.reduced.size(); ++r) {
      const std::string here = text_of(*mine.reduced[r].second),
                        there = text_of(*theirs.reduced[r].second);
      if (mine.reduced[r].first != theirs.reduced[r].first || here != there) {
        return here + ", " + there;
      }
    }
    return "";
  };
  for (size_t n = 0; n < std::min(nodes.size(), other.nodes.size()); ++n) {
    const std::string what = difference_of(nodes[n], other.nodes[n]);
    if (!what.empty()) {
      return str("node ", n + 1, ", ", nodes[n].name(), " in ", nodes[n].place, ": ", what);
    }
  }
  if (nodes.size() == other.nodes.size()) return "";
  return str(other.nodes.size(), " nodes instead of ", nodes.size());
}

std::vector<double> bytes_by_device(const Sharding& sharding) {
  const Mesh& mesh = sharding.layout.mesh();
  std::vector<double> bytes;
  for (int64_t id = 0; id < mesh.size(); ++id) {
    std::vector<Interval> at;
    for (int64_t coordinate : mesh.coordinates(id)) at.push_back({coordinate, coordinate + 1});
    double size = static_cast<double>(c10::elementSize(sharding.dtype));
    for (int64_t a = 0; a < sharding.layout.rank(); ++a) {
      const int64_t extent = sharding.shape[static_cast<size_t>(a)];
      size *= static_cast<double>(axis_interval(sharding.layout, a, extent, at).size());
    }
    bytes.push_back(size);
  }
  return bytes;
}

double flops_of(const OpInfo& info, const void* op, std::span<const ShardingPtr> in,
                std::span<const ShardingPtr> out) {
  const std::string_view name = info.name;
  if (info.moves_blocks) return 0;
  // How many products there are for each product of the extents of all factors.
  static const std::map<std::string_view, double> products = {{"attention", 2},
                                                              {"attention_grad", 5},
                                                              {"ring_attention", 2},
                                                              {"ring_attention_grad", 5},
                                                              {"conv", 1},
                                                              {"conv_kernel_grad", 1},
                                                              {"conv_transpose", 1},
                                                              {"dense", 1},
                                                              {"dense_relu", 1},
                                                              {"einsum", 1},
                                                              {"fused_conv", 1},
                                                              {"int8_einsum", 1},
                                                              {"linear_class_max", 1},
                                                              {"linear_class_terms", 1},
                                                              {"linear_class_terms_grad", 3},
                                                              {"linear_softmax_cross_entropy", 1},
                                                              {"matmul", 1}};
  const auto found = products.find(name);
  if (found == products.end()) {
    double results = 0;
    for (const ShardingPtr& sharding : out) results += double(numel(sharding->shape));
    return results;
  }
  Specs specs;
  for (const ShardingPtr& sharding : in) specs.push_back({sharding->shape, sharding->dtype});
  const Rule rule = info.rule(op, specs);
  double product = 1;
  std::set<int> seen;
  const auto multiply = [&](const std::vector<int>& factors, const Shape& shape, bool is_kernel) {
    for (size_t a = 0; a < factors.size(); ++a) {
      const bool window = factors[a] == Rule::none && is_kernel;
      if (window || (factors[a] != Rule::none && seen.insert(factors[a]).second)) {
        product *= double(shape[a]);
      }
    }
  };
  // A convolution has a product for each of its own pixels, those of its result or of that result's
  // gradient, and for each position of its window, which are axes of the kernel without a factor.
  const bool convolves = name == "conv" || name == "fused_conv";
  if (convolves) multiply(rule.out[0], out[0]->shape, false);
  if (name == "conv_kernel_grad") {
    multiply(rule.in[1], specs[1].shape, false);
    multiply(rule.out[0], out[0]->shape, true);
  }
  for (size_t i = 0; i < rule.in.size(); ++i) {
    const bool is_kernel = i == 1 && (convolves || name == "conv_transpose");
    multiply(rule.in[i], specs[i].shape, is_kernel);
  }
  return 2 * found->second * product;
}

namespace {

/// Adds up what each device of a mesh holds, and notes the most.
class HeldMemory {
 public:
  using Use = StepGraph::Use;
  HeldMemory(const StepGraph& graph, const Mesh& mesh)
      : graph_(graph), mesh_(mesh), held_(size_t(mesh.size())), peaks_(size_t(mesh.size())) {
    for (const StepGraph::Value& value : graph.values) now_.push_back(value.sharding);
  }

  void add(Use use, const Sharding& sharding, double sign = 1) {
    if (sharding.layout.mesh().size() != mesh_.size()) return;
    const std::vector<double> bytes = bytes_by_device(sharding);
    for (size_t d = 0; d < held_.size(); ++d) held_[d][use] += sign * bytes[d];
  }
  void remove(Use use, const Sharding& sharding) { add(use, sharding, -1); }
  void add_value(int32_t number) { add(use_of(number), *now_[size_t(number)]); }
  void remove_value(int32_t number) { remove(use_of(number), *now_[size_t(number)]); }

  /// Whether a reduction makes another tensor, which one over a single device does not.
  bool copies(int32_t number, const Sharding& to) const {
    const Sharding& from = *now_[size_t(number)];
    return from.mesh().size_of(from.layout.partial_dims()) > 1 ||
           bytes_by_device(from) != bytes_by_device(to);
  }
  /// Replaces a value by its reduction; both are there for a moment.
  void reduce(int32_t number, const ShardingPtr& to, const std::string& place) {
    const bool copied = copies(number, *to);
    if (copied) add(use_of(number), *to);
    note(place);
    if (copied) remove_value(number);
    now_[size_t(number)] = to;
  }

  /// Applies what a reduction between processes changes.
  void apply(const PlannedReduction& change, const std::string& place) {
    using Change = PlannedReduction::Change;
    if (change.change == Change::replaced) {
      return reduce(static_cast<int32_t>(change.gradient), change.sharding, place);
    }
    const bool held = change.change == Change::held;
    if (!change.sent_over.empty()) {
      const auto same = [&](const PlannedReduction& sent) {
        return sent.gradient == change.gradient;
      };
      if (held) {
        sending_.push_back(change);
      } else if (std::erase_if(sending_, same) == 0) {
        return;
      }
    }
    add(Use::gradients, *change.sharding, held ? 1 : -1);
    note(place);
  }
  /// Ends the reductions that began before a collective over these mesh dimensions.
  void end_sending(const std::string& dims) {
    std::erase_if(sending_, [&](const PlannedReduction& sent) {
      if (sent.sent_over != dims) return false;
      remove(Use::gradients, *sent.sharding);
      return true;
    });
  }

  /// Notes the present as the peak of every device that holds more than ever before.
  void note(const std::string& place) {
    for (size_t d = 0; d < held_.size(); ++d) {
      if (held_[d].total() <= peaks_[d].total()) continue;
      peaks_[d] = held_[d];
      peaks_[d].place = place;
    }
  }
  std::vector<StepPlan::Peak> take_peaks() { return std::move(peaks_); }

 private:
  Use use_of(int32_t number) const { return graph_.values[size_t(number)].use; }

  const StepGraph& graph_;
  const Mesh& mesh_;
  std::vector<StepPlan::Peak> held_, peaks_;
  std::vector<ShardingPtr> now_;  ///< by number of the value
  std::vector<PlannedReduction> sending_;
};

/// Returns the values to release after each node: memory that a node made lives until the last node
/// that reads a value in it.
std::vector<std::vector<int32_t>> released_values(const StepGraph& graph) {
  std::vector<int64_t> last(graph.values.size(), -1);
  std::vector<bool> made(graph.values.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto use = [&](int32_t number) {
      const int32_t memory = graph.values[size_t(number)].memory;
      if (memory >= 0) last[size_t(memory)] = static_cast<int64_t>(n);
    };
    for (const StepGraph::Operand& in : graph.nodes[n].in) {
      if (in.kind == StepGraph::Operand::Kind::value) use(in.number);
    }
    for (int32_t number : graph.nodes[n].out) {
      made[size_t(number)] = true;
      use(number);
    }
  }
  std::vector<std::vector<int32_t>> released(graph.nodes.size());
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const StepGraph::Value& value = graph.values[v];
    const bool own = value.memory == static_cast<int32_t>(v);
    if (own && made[v]) {
      released[size_t(last[v])].push_back(static_cast<int32_t>(v));
    }
  }
  return released;
}

}  // namespace

std::vector<StepPlan::Peak> peaks_of(const StepGraph& graph, const Mesh& mesh) {
  HeldMemory memory(graph, mesh);
  const auto owns_memory = [&](int32_t number) {
    return graph.values[size_t(number)].memory == number;
  };
  for (int32_t v = 0; v < std::ssize(graph.values); ++v) {
    if (owns_memory(v) && graph.values[size_t(v)].use == StepGraph::Use::batch) {
      memory.add_value(v);
    }
  }
  const std::vector<std::vector<int32_t>> released = released_values(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const StepGraph::Node& node = graph.nodes[n];
    for (const ShardingPtr& moved : node.moved) memory.add(StepGraph::Use::activations, *moved);
    for (int32_t number : node.out) {
      if (owns_memory(number)) memory.add_value(number);
    }
    memory.note(node.place);
    for (const ShardingPtr& moved : node.moved) memory.remove(StepGraph::Use::activations, *moved);
    for (const auto& [number, sharding] : node.reduced) {
      memory.reduce(number, sharding, node.place);
    }
    for (const std::string& dims : node.waited_for) memory.end_sending(dims);
    for (const PlannedReduction& change : node.reductions) memory.apply(change, node.place);
    for (int32_t number : released[n]) memory.remove_value(number);
  }
  return memory.take_peaks();
}

GraphRecorder::GraphRecorder(const Batch& batch, bool runs) : runs_(runs) {
  for (const auto* list : {&batch.x, &batch.y, &batch.sample_weight}) {
    for (const DTensor& value : *list) {
      if (!value.defined()) {
        graph_.batch.push_back(-1);
        continue;
      }
      const auto known = numbers_.find(value.id());
      graph_.batch.push_back(known == numbers_.end() ? number(value) : known->second);
      graph_.values[size_t(graph_.batch.back())].use = StepGraph::Use::batch;
    }
  }
}

StepGraph GraphRecorder::finish() {
  note_reduced();
  return std::move(graph_);
}

int32_t GraphRecorder::number_of(const DTensor& value) const {
  const auto found = numbers_.find(value.id());
  if (found != numbers_.end()) return found->second;
  throw StateError("train_step", "the results of a step are computed by the step",
                   "a value that no operation of it made", "return what its operations compute");
}

int32_t GraphRecorder::number(const DTensor& value) {
  const auto next = static_cast<int32_t>(graph_.values.size());
  graph_.values.push_back({value.sharding(), next});
  handles_.push_back(value);
  now_.push_back(value.sharding());
  numbers_[value.id()] = next;
  return next;
}

GraphRecorder::Operand GraphRecorder::operand(const DTensor& value) {
  if (!value.defined()) return {};
  if (value.tag()) {
    const auto [it, inserted] =
        variables_.try_emplace(value.tag()->id, static_cast<int32_t>(graph_.variables.size()));
    if (inserted) {
      graph_.variables.push_back(value.tag()->path);
      graph_.variable_ids.push_back(value.tag()->id);
    }
    return {Operand::Kind::variable, it->second};
  }
  const auto it = numbers_.find(value.id());
  if (it != numbers_.end()) return {Operand::Kind::value, it->second};
  // A value that no operation of the step made is a constant.
  if (runs_) stop("a value was used that no operation made");
  return {Operand::Kind::value, number(value)};
}

StepGraph::Node& GraphRecorder::add(std::span<const DTensor> in) {
  note_reduced();
  StepGraph::Node node;
  for (const DTensor& value : in) node.in.push_back(operand(value));
  node.place = CommLabel::current();
  node.gradient_of = gradient_of_;
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back();
}

void GraphRecorder::note_reduced() {
  if (graph_.nodes.empty()) return;
  if (PlannedTensors* const planned = planned_tensors()) {
    for (PlannedReduction& change : std::exchange(planned->reductions, {})) {
      if (change.change == PlannedReduction::Change::replaced) {
        const auto found = numbers_.find(change.gradient);
        if (found == numbers_.end()) continue;
        change.gradient = static_cast<uint64_t>(found->second);
        now_[change.gradient] = change.sharding;
      }
      graph_.nodes.back().reductions.push_back(std::move(change));
    }
  }
  for (int32_t value : reduced_by_action_) {
    const ShardingPtr& sharding = handles_[size_t(value)].sharding();
    if (sharding == now_[size_t(value)]) continue;
    now_[size_t(value)] = sharding;
    graph_.nodes.back().reduced.emplace_back(value, sharding);
  }
  reduced_by_action_.clear();
}

void GraphRecorder::constant(const DTensor& made) { number(made); }

void GraphRecorder::numbers(const DTensor& made, const at::Tensor& numbers) {
  if (!numbers.defined()) return stop("a constant was made of shards");
  graph_.constants[numbers_.at(made.id())] = numbers;
}

void GraphRecorder::gradient_of(uint64_t value) {
  gradient_of_ = {};
  if (const auto found = numbers_.find(value); found != numbers_.end()) {
    gradient_of_ = {Operand::Kind::value, found->second};
  } else if (const auto variable = variables_.find(value); variable != variables_.end()) {
    gradient_of_ = {Operand::Kind::variable, variable->second};
  }
}

void GraphRecorder::stop(const std::string& why) {
  if (why_.empty()) why_ = why;
}

void GraphRecorder::input(const DTensor& made, int64_t, std::function<at::Tensor(int64_t)> host) {
  const int32_t out = number(made);
  StepGraph::Node& node = add({});
  node.out.push_back(out);
  if (runs_) node.host = std::move(host);
}

void GraphRecorder::ran(const OpInfo& info, const std::shared_ptr<const void>& op,
                        const std::shared_ptr<OpPlan>& plan, std::span<const DTensor> in,
                        std::span<const DTensor> out) {
  StepGraph::Node& node = add(in);
  node.info = &info;
  node.op = op;
  if (runs_) node.plan = plan;
  std::vector<ShardingPtr> read, made;
  for (size_t i = 0; i < in.size(); ++i) {
    read.push_back(in[i].sharding());
    // A partial sum is resolved in all its handles.
    if (!plan || plan->inputs()[i]->layout.is_partial()) continue;
    const Layout& wanted = plan->propagation().inputs[i];
    const bool gathered = gathers(read[i]->layout, wanted);
    if (gathered) node.moved.push_back(intern(read[i]->shape, read[i]->dtype, wanted));
  }
  for (size_t o = 0; o < out.size(); ++o) {
    const DTensor& value = out[o];
    const int32_t result = number(value);
    graph_.nodes.back().out.push_back(result);
    made.push_back(value.sharding());
    StepGraph::Value& noted = graph_.values[size_t(result)];
    const size_t i = input_of_result(info, o);
    const Operand& input = graph_.nodes.back().in[i];
    const StepGraph::Value* const from =
        input.kind == Operand::Kind::value ? &graph_.values[size_t(input.number)] : nullptr;
    const bool view = shares_memory(info, read[i]->layout, value.layout());
    if (view) noted.memory = from ? from->memory : StepGraph::Value::of_variable;
    if (!value.is_parameter()) continue;
    const bool gathered =
        (from && from->use == StepGraph::Use::gathered) || gathers(read[i]->layout, value.layout());
    noted.use = gathered ? StepGraph::Use::gathered : StepGraph::Use::casts;
  }
  graph_.nodes.back().flops = flops_of(info, op.get(), read, made);
  if (const CommLog* const log = CommLogScope::current()) {
    for (; logged_ < log->entries().size(); ++logged_) {
      graph_.nodes.back().waited_for.push_back(log->entries()[logged_].dims);
    }
  }
}

void GraphRecorder::action(std::span<const DTensor> in, const SideEffect& run, Changes changes) {
  StepGraph::Node& node = add(in);
  node.effect = true;
  node.changes = changes;
  if (runs_) node.run = run;
  for (const Operand& operand : node.in) {
    if (operand.kind != Operand::Kind::value) continue;
    reduced_by_action_.push_back(operand.number);
    StepGraph::Value& value = graph_.values[size_t(operand.number)];
    if (changes != Changes::variables || value.sharding->shape.empty() || value.memory < 0)
      continue;
    // A gradient may be a view, of memory that is then the gradient's.
    for (StepGraph::Value* each : {&value, &graph_.values[size_t(value.memory)]}) {
      if (each->use == StepGraph::Use::activations) each->use = StepGraph::Use::gradients;
    }
  }
}

}  // namespace tessera::detail
