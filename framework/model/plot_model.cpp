#include <tessera/framework/model/plot_model.hpp>

#include <algorithm>
#include <iostream>
#include <map>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/drawing/dot_graph.hpp>
#include <tessera/framework/drawing/graphviz.hpp>
#include <tessera/framework/model/functional.hpp>
#include <tessera/framework/model/internal/summary_rows.hpp>
#include <tessera/framework/model/sequential.hpp>

namespace tessera {

using namespace detail;

namespace {

class GraphBuilder {
 public:
  explicit GraphBuilder(const PlotModelOptions& options) : options_(options) {}

  /// Adds the nodes of a model called on the nodes `inputs`; returns its output nodes.
  std::vector<int> add_model(Model& model, const std::vector<int>& inputs, int cluster) {
    if (const auto* functional = dynamic_cast<const FunctionalModel*>(&model)) {
      return add_functional(*functional, inputs, cluster);
    }
    if (dynamic_cast<const SequentialModel*>(&model)) return add_chain(model, inputs, cluster);
    std::vector<int> ends;
    for (const auto& layer : model.sublayers()) {
      Shapes shapes;
      if (layer->built()) shapes = layer->output_shapes(layer->built_for());
      for (int end : add_layer(layer, shapes, inputs, cluster)) ends.push_back(end);
    }
    return ends;
  }

  DotGraph take() { return std::move(graph_); }

 private:
  /// The nodes of a layer, added by its first call.
  struct Drawn {
    std::vector<int> from, ends;
    size_t begin = 0, end = 0;
  };

  std::vector<int> add_functional(const FunctionalModel& model, const std::vector<int>& inputs,
                                  int cluster) {
    std::map<const Node*, std::vector<int>> ends;
    std::map<const Layer*, Drawn> drawn;
    const std::vector<SymbolicTensor> entries = model.symbolic_inputs();
    for (const auto& node : model.nodes()) {
      std::vector<int> from;
      for (size_t i = 0; i < entries.size() && node->inputs.empty(); ++i) {
        const bool entered = entries[i].node() == node && i < inputs.size();
        if (entered) from.push_back(inputs[i]);
      }
      for (const SymbolicTensor& input : node->inputs) from.push_back(end_of(ends, input));
      const auto [known, is_new] = drawn.try_emplace(node->layer.get());
      Drawn& layer = known->second;
      if (is_new) {
        layer = {from, {}, graph_.nodes.size(), 0};
        layer.ends = add_layer(node->layer, node->shapes, from, cluster);
        layer.end = graph_.nodes.size();
      } else {
        add_arrows(layer, from);
      }
      ends[node.get()] = layer.ends;
    }
    std::vector<int> outputs;
    for (const SymbolicTensor& output : model.symbolic_outputs()) {
      outputs.push_back(end_of(ends, output));
    }
    return outputs;
  }

  /// Adds a layer's further call: more arrows into the box, or cluster, of its first call.
  void add_arrows(const Drawn& layer, const std::vector<int>& from) {
    for (size_t n = layer.begin; n < layer.end; ++n) {
      std::vector<int>& list = graph_.nodes[n].inputs;
      for (size_t i = 0; i < from.size(); ++i) {
        const auto has = [&](int node) { return std::count(list.begin(), list.end(), node) > 0; };
        if (has(layer.from[i]) && !has(from[i])) list.push_back(from[i]);
      }
    }
  }

  static int end_of(const std::map<const Node*, std::vector<int>>& ends,
                    const SymbolicTensor& tensor) {
    const std::vector<int>& list = ends.at(tensor.node().get());
    return list[std::min(tensor.index(), list.size() - 1)];
  }

  std::vector<int> add_chain(Model& model, std::vector<int> inputs, int cluster) {
    Shapes shapes = model.built() ? model.input_shapes() : Shapes();
    for (const auto& layer : model.sublayers()) {
      if (!shapes.empty()) shapes = layer->output_shapes(shapes);
      inputs = add_layer(layer, shapes, inputs, cluster);
    }
    return inputs;
  }

  std::vector<int> add_layer(const std::shared_ptr<Layer>& layer, const Shapes& shapes,
                             const std::vector<int>& inputs, int cluster) {
    auto* inner = dynamic_cast<Model*>(layer.get());
    if (inner && options_.expand_nested && !inner->sublayers().empty()) {
      graph_.clusters.push_back({layer->name(), layer->class_name(), cluster});
      return add_model(*inner, inputs, static_cast<int>(graph_.clusters.size()) - 1);
    }
    graph_.nodes.push_back(
        {layer->name(), layer->class_name(), rows(*layer, shapes), inputs, cluster});
    return {static_cast<int>(graph_.nodes.size()) - 1};
  }

  std::vector<DotNode::Row> rows(const Layer& layer, const Shapes& shapes) const {
    std::vector<DotNode::Row> rows;
    for (const Shape& shape : shapes) {
      if (options_.show_shapes) rows.push_back({"output", keras_shape(shape).to_string(false)});
    }
    if (options_.show_params && layer.count_params() > 0) {
      rows.push_back({"parameters", with_commas(layer.count_params())});
    }
    for (const Variable& weight : layer.weights()) {
      if (!options_.show_layouts) break;
      const std::string name = weight.path().substr(weight.path().rfind('/') + 1);
      rows.push_back({name, weight.layout().describe()});
    }
    return rows;
  }

  const PlotModelOptions& options_;
  DotGraph graph_;
};

}  // namespace

std::string model_to_dot(Model& model, const PlotModelOptions& options) {
  model.name_layers();
  GraphBuilder builder(options);
  builder.add_model(model, {}, -1);
  DotGraph graph = builder.take();
  graph.title = model.name().empty() ? model.class_name() : model.name();
  return graph.text();
}

void plot_model(Model& model, const std::string& path, const PlotModelOptions& options) {
  const size_t dot = path.rfind('.');
  const std::string ending = dot == std::string::npos ? "" : path.substr(dot);
  if (ending != ".dot" && ending != ".svg" && ending != ".png") {
    throw ConfigError("plot_model", "the path must end in .dot, .svg or .png", in_quotes(path),
                      "name such a file");
  }
  const std::string graph = path.substr(0, dot) + ".dot";
  write_file_atomically(graph, model_to_dot(model, options));
  if (ending == ".dot") return;
  const std::string reason = draw_dot_file(graph, path);
  if (reason.empty()) return;
  std::cerr << str("Warning: ", path, " is not drawn: ", reason, ". The graph is in ", graph,
                   ". To fix: apt-get install graphviz, then dot -T", ending.substr(1), " ", graph,
                   " -o ", path, "\n");
}

}  // namespace tessera
