#include <tessera/framework/model/functional.hpp>

#include <algorithm>
#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/graph/internal/model_graph.hpp>
#include <tessera/framework/ops/elementwise.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Sets the trailing inputs as the masks of the inputs at the indices `masked`.
void put_masks(Inputs& inputs, const std::vector<size_t>& masked) {
  const size_t arguments = inputs.size() - masked.size();
  for (size_t i = 0; i < masked.size(); ++i) {
    const DTensor& mask = inputs[arguments + i];
    inputs[masked[i]] = inputs[masked[i]].with_mask(ops::cast(mask, at::kBool));
  }
  inputs.resize(arguments);
}

/// Returns the keys; without keys, the names of the layers that output the tensors.
std::vector<std::string> names_of_ends(const SymbolicTensors& ends) {
  if (!ends.keys.empty()) return ends.keys;
  std::vector<std::string> names;
  for (const SymbolicTensor& end : ends.tensors) names.push_back(end.node()->layer->name());
  return names;
}

}  // namespace

FunctionalModel::FunctionalModel(SymbolicTensors inputs, SymbolicTensors outputs,
                                 const FunctionalOptions& options)
    : Model({options.name, options.dtype, options.trainable}),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)) {
  ModelGraph graph = trace_graph(inputs_.tensors, outputs_.tensors);
  nodes_ = std::move(graph.nodes);
  std::map<const Layer*, int64_t> calls;
  for (const auto& node : nodes_) call_index_[node.get()] = calls[node->layer.get()]++;
  for (const auto& layer : graph.layers) track(layer);
  make_steps();
  if (!options.trainable) set_trainable(false);
  build(input_shapes());
}

Shapes FunctionalModel::input_shapes() const {
  Shapes shapes;
  for (const SymbolicTensor& input : inputs_.tensors) shapes.push_back(input.shape());
  return shapes;
}

std::vector<std::string> FunctionalModel::output_names() const { return names_of_ends(outputs_); }

std::vector<std::string> FunctionalModel::input_names() const { return names_of_ends(inputs_); }

/// Numbers layers in order of construction, whatever their position in the graph, like Keras.
std::vector<std::shared_ptr<Layer>> FunctionalModel::naming_order() const {
  std::vector<std::shared_ptr<Layer>> layers = sublayers();
  std::stable_sort(layers.begin(), layers.end(),
                   [](const auto& a, const auto& b) { return a->serial() < b->serial(); });
  return layers;
}

void FunctionalModel::make_steps() {
  std::map<const Node*, size_t> first_slot;
  const auto slot_of = [&](const SymbolicTensor& tensor) {
    return first_slot.at(tensor.node().get()) + tensor.index();
  };
  for (const auto& node : nodes_) {
    first_slot[node.get()] = slots_;
    slots_ += node->shapes.size();
    if (node->inputs.empty()) continue;
    Step step{node->layer.get(), {}, node->masked, first_slot.at(node.get()), {}};
    for (const SymbolicTensor& input : node->inputs) step.in.push_back(slot_of(input));
    steps_.push_back(std::move(step));
  }
  for (const SymbolicTensor& input : inputs_.tensors) input_slots_.push_back(slot_of(input));
  std::set<size_t> needed;
  for (const SymbolicTensor& output : outputs_.tensors) {
    output_slots_.push_back(slot_of(output));
    needed.insert(output_slots_.back());
  }
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    for (size_t slot : step->in) {
      if (needed.insert(slot).second) step->last_uses.push_back(slot);
    }
  }
}

void FunctionalModel::check_count(size_t count) const {
  if (count == inputs_.tensors.size()) return;
  throw ShapeError("model " + path(), str("the model takes ", inputs_.tensors.size(), " inputs"),
                   str(count), "pass one tensor for each Input");
}

void FunctionalModel::build_sublayers(const Shapes& inputs) {
  check_count(inputs.size());
  for (const auto& node : nodes_) {
    Shapes shapes;
    for (size_t i = 0; i < node->arguments(); ++i) shapes.push_back(node->inputs[i].shape());
    node->layer->build(shapes);
  }
}

Shapes FunctionalModel::output_shapes(const Shapes& inputs) const {
  check_count(inputs.size());
  std::vector<Shape> shapes(slots_);
  for (size_t i = 0; i < inputs.size(); ++i) {
    shapes[input_slots_[i]] = inputs_.tensors[i].node()->layer->output_shape({inputs[i]});
  }
  for (const Step& step : steps_) {
    Shapes in;
    for (size_t i = 0; i < step.arguments(); ++i) in.push_back(shapes[step.in[i]]);
    const Shapes out = step.layer->output_shapes(in);
    std::copy(out.begin(), out.end(), shapes.begin() + static_cast<std::ptrdiff_t>(step.out));
  }
  Shapes outputs;
  for (size_t slot : output_slots_) outputs.push_back(shapes[slot]);
  return outputs;
}

std::vector<DTensor> FunctionalModel::call_all(const Inputs& inputs, const CallContext& context) {
  check_count(inputs.size());
  std::vector<DTensor> values(slots_);
  for (size_t i = 0; i < inputs.size(); ++i) {
    values[input_slots_[i]] = (*inputs_.tensors[i].node()->layer)(inputs[i], context);
  }
  for (const Step& step : steps_) {
    Inputs in;
    for (size_t slot : step.in) in.push_back(values[slot]);
    put_masks(in, step.masked);
    // The tape keeps values that only the backward pass needs.
    for (size_t slot : step.last_uses) values[slot] = DTensor();
    std::vector<DTensor> out = step.layer->outputs(in, context);
    std::move(out.begin(), out.end(), values.begin() + static_cast<std::ptrdiff_t>(step.out));
  }
  std::vector<DTensor> outputs;
  for (size_t slot : output_slots_) outputs.push_back(values[slot]);
  return outputs;
}

Functional::Functional(SymbolicTensors inputs, SymbolicTensors outputs,
                       const FunctionalOptions& options)
    : ModelHandle(
          std::make_shared<FunctionalModel>(std::move(inputs), std::move(outputs), options)) {}

}  // namespace tessera
