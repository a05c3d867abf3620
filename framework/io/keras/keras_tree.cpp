#include <tessera/framework/io/keras/keras_tree.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/nn/internal/lora_layer.hpp>
#include <tessera/framework/nn/internal/reversed_call.hpp>

namespace tessera::detail {
namespace {

/// Returns whether the layer is recurrent: Keras stores such a layer's weights in a cell.
bool has_cell(const Layer& layer) {
  const std::string kind = layer.class_name();
  return kind == "LSTM" || kind == "GRU" || kind == "SimpleRNN";
}

class TreeWalk {
 public:
  std::vector<KerasGroup> walk(const Layer& model) {
    visit(model, {});
    return std::move(groups_);
  }

 private:
  /// A group's path, and the one if layers with weights count twice.
  struct Paths {
    std::string path, counted_twice;
    Paths operator+(const std::string& text) const { return {path + text, counted_twice + text}; }
  };

  void visit(const Layer& layer, const Paths& path) {
    // To Keras the calls of a tied head are the embedding's.
    if (is_reversed(layer) || !seen_.insert(&layer).second) return;
    KerasGroup own{path.path, path.counted_twice, layer.name(), &layer, own_variables(layer)};
    std::vector<Variable> cell;
    if (has_cell(layer)) cell = std::exchange(own.variables, {});
    groups_.push_back(std::move(own));
    if (has_cell(layer)) {
      const Paths inner = path + "/cell";
      groups_.push_back({inner.path, inner.counted_twice, snake_case(layer.class_name()) + "_cell",
                         nullptr, cell});
    }
    const std::string kind = layer.class_name();
    const bool has_list = kind == "Sequential" || kind == "Functional" || kind == "Pipeline";
    if (has_list) visit_list(layer.sublayers(), path + "/layers");
    if (kind == "StackedRNNCells") visit_list(layer.sublayers(), path + "/cells");
    visit_attributes(layer, path);
  }

  /// Visits the attributes in Python's order, where names with an underscore come last. A model's
  /// list of layers is one of the attributes.
  void visit_attributes(const Layer& layer, const Paths& path) {
    std::map<std::pair<bool, std::string>, const Layer*> attributes;
    const auto add = [&](const std::string& name, const Layer* child) {
      attributes.emplace(std::pair(name.starts_with('_'), name), child);
    };
    for (size_t i = 0; i < layer.sublayers().size(); ++i) {
      const std::string& name = layer.attributes()[i];
      if (!name.empty()) add(name, layer.sublayers()[i].get());
    }
    if (layer.is_model()) add("layers", nullptr);
    const std::string kind = layer.class_name();
    if (kind == "MultiHeadAttention" || kind == "GroupQueryAttention") {
      add("_softmax", nullptr);
      add("_dropout_layer", nullptr);
    }
    for (const auto& [name, child] : attributes) {
      const Paths inner = path + ("/" + name.second);
      if (child) {
        visit(*child, inner);
      } else if (name.first) {
        const std::string base = name.second == "_softmax" ? "softmax" : "dropout";
        const int64_t number = unnamed_[base]++;
        groups_.push_back({inner.path, inner.counted_twice, counted(base, number), nullptr, {}});
      } else {
        visit_list(layer.sublayers(), inner);
      }
    }
  }

  static std::string counted(const std::string& base, int64_t number) {
    return number == 0 ? base : str(base, "_", number);
  }

  void visit_list(const std::vector<std::shared_ptr<Layer>>& layers, const Paths& path) {
    std::map<std::string, int64_t> counts, counts_twice;
    for (const auto& layer : layers) {
      if (layer->is_operation()) continue;
      const std::string base = snake_case(layer->class_name());
      const int64_t number = counts[base]++, number_twice = counts_twice[base];
      counts_twice[base] += layer->weights().empty() ? 1 : 2;
      visit(*layer, {path.path + "/" + counted(base, number),
                     path.counted_twice + "/" + counted(base, number_twice)});
    }
  }

  /// Returns a layer's own weights, without its sublayers': trainable ones first, by whether they
  /// were created trainable, whatever was frozen since.
  static std::vector<Variable> own_variables(const Layer& layer) {
    std::vector<Variable> list = layer.own_weights();
    // Keras stores the kernel with its adapter.
    if (layer.has_lora()) {
      const auto& adapted = dynamic_cast<const LoraLayer&>(layer);
      std::erase_if(list, [&](const Variable& weight) {
        return weight.is(adapted.a()) || weight.is(adapted.b());
      });
    }
    // Keras stores the wrapped layer's kernel with the wrapper, too.
    if (layer.class_name() == "SpectralNormalization" && !list.empty()) {
      list.insert(list.begin(), layer.weights()[0]);
    }
    // Keras lists the weights of a quantized layer itself: kernel, bias and scale.
    if (layer.is_quantized()) return list;
    std::stable_partition(list.begin(), list.end(),
                          [](const Variable& weight) { return weight.spec().trainable; });
    return list;
  }

  std::vector<KerasGroup> groups_;
  std::set<const Layer*> seen_;
  /// Counts of layers that Keras creates without a name and numbers in order of creation.
  std::map<std::string, int64_t> unnamed_;
};

}  // namespace

std::vector<KerasGroup> keras_tree(const Layer& model) { return TreeWalk().walk(model); }

}  // namespace tessera::detail
