#include <tessera/framework/model/internal/summary_rows.hpp>

#include <functional>
#include <set>

#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/model/sequential.hpp>

namespace tessera::detail {
namespace {

StyledText params_text(const Layer& layer) {
  if (!layer.built()) return StyledText("0", TextStyle::number).add(" (unbuilt)");
  return StyledText(with_commas(layer.count_params()), TextStyle::number);
}

StyledText trainable_text(const Layer& layer) {
  if (layer.weights().empty()) return StyledText("-", TextStyle::bold);
  return layer.trainable() ? StyledText("Y", TextStyle::yes) : StyledText("N", TextStyle::no);
}

StyledText layouts_text(const Layer& layer) {
  StyledText text;
  const auto add = [&](const std::string& part) {
    if (text.size() > 0) text.add(", ");
    text.add(part);
  };
  if (!layer.is_model()) {
    for (const Variable& weight : layer.weights()) {
      add(weight.path().substr(weight.path().rfind('/') + 1) + " " + weight.layout().describe());
    }
  }
  // A composite layer also shows the values of its sublayers, by their paths within it.
  const std::function<void(const Layer&, const std::string&)> values =
      [&](const Layer& one, const std::string& inside) {
        for (const std::string& placed : one.placed_values()) add(inside + placed);
        if (one.is_model()) return;
        for (const auto& inner : one.sublayers()) values(*inner, inside + inner->name() + "/");
      };
  values(layer, "");
  return text.size() > 0 ? text : StyledText("-");
}

}  // namespace

StyledText keras_shape(const Shape& shape) {
  StyledText text("(");
  for (size_t a = 0; a < shape.size(); ++a) {
    if (a) text.add(", ");
    if (shape[a] < 0) {
      text.add("None", TextStyle::none);
    } else {
      text.add(std::to_string(shape[a]), TextStyle::number);
    }
  }
  return text.add(")");
}

std::string with_commas(int64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

bool is_chain(const FunctionalModel& model) {
  std::set<const Layer*> seen;
  const Node* before = nullptr;
  for (const auto& node : model.nodes()) {
    if (node->inputs.size() > 1 || !seen.insert(node->layer.get()).second) return false;
    if (node->inputs.empty() != (before == nullptr)) return false;
    if (before && node->inputs[0].node().get() != before) return false;
    before = node.get();
  }
  return true;
}

SummaryRows::SummaryRows(const Model& model, const SummaryOptions& options,
                         const FunctionalModel* graph)
    : options_(options), graph_(graph) {
  remember_shapes(model);
}

void SummaryRows::remember_shapes(const Model& model) {
  if (const auto* functional = dynamic_cast<const FunctionalModel*>(&model)) {
    for (const auto& node : functional->nodes()) shapes_[node->layer.get()] = node->shapes;
  } else {
    for (const auto& layer : model.sublayers()) {
      if (layer->built()) shapes_[layer.get()] = layer->output_shapes(layer->built_for());
    }
  }
  for (const auto& layer : model.sublayers()) {
    const auto* inner = dynamic_cast<const Model*>(layer.get());
    if (inner && inner->built()) remember_shapes(*inner);
  }
}

StyledText SummaryRows::shape_text(const Layer& layer) const {
  const auto it = shapes_.find(&layer);
  if (it == shapes_.end()) return StyledText("?");
  StyledText text;
  if (it->second.size() > 1) text.add("[");
  for (size_t i = 0; i < it->second.size(); ++i) {
    if (i) text.add(", ");
    text.add(keras_shape(it->second[i]));
  }
  if (it->second.size() > 1) text.add("]");
  return text;
}

StyledText SummaryRows::connections(const Layer& layer) const {
  StyledText text;
  for (const auto& node : graph_->nodes()) {
    if (node->layer.get() != &layer) continue;
    for (const SymbolicTensor& input : node->inputs) {
      if (text.size() > 0) text.add(", ");
      text.add(input.node()->layer->name() + "[")
          .add(std::to_string(graph_->call_index(*input.node())), TextStyle::number)
          .add("][")
          .add(std::to_string(input.index()), TextStyle::number)
          .add("]");
    }
  }
  return text.size() > 0 ? text : StyledText("-");
}

void SummaryRows::add(const Layer& layer, int level,
                      std::vector<std::vector<StyledText>>& rows) const {
  std::string prefix;
  for (int i = 0; i < level; ++i) prefix += "   ";
  if (level > 0) prefix += "└ ";
  StyledText name(prefix + layer.name() + " (");
  name.add(layer.class_name(), TextStyle::symbol).add(")");
  std::vector<StyledText> row = {name, shape_text(layer), params_text(layer)};
  if (graph_) row.push_back(connections(layer));
  if (options_.show_trainable) row.push_back(trainable_text(layer));
  if (options_.show_layout) row.push_back(layouts_text(layer));
  rows.push_back(std::move(row));
  if (!options_.expand_nested || !layer.is_model()) return;
  for (const auto& inner : layer.sublayers()) {
    // Operations are shown only for the model itself, not for nested models.
    if (!inner->is_operation()) add(*inner, level + 1, rows);
  }
}

}  // namespace tessera::detail
