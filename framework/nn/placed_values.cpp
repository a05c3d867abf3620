#include <tessera/framework/nn/internal/placed_values.hpp>

#include <algorithm>
#include <functional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Returns the site's name: "input", "input_1", …
std::string numbered(const std::string& name, size_t index) {
  return index == 0 ? name : str(name, "_", index);
}

}  // namespace

std::vector<ValueSite> detail::value_sites(const Layer& layer) {
  std::vector<ValueSite> sites;
  if (!layer.built() || layer.built_for().empty()) return sites;
  const auto add = [&](const std::string& name, const Shapes& shapes) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      sites.push_back({numbered(name, i), static_cast<int64_t>(shapes[i].size())});
    }
  };
  add("input", layer.built_for());
  add("output", layer.output_shapes(layer.built_for()));
  for (const auto& [name, rank] : layer.value_names()) sites.push_back({name, rank});
  return sites;
}

std::shared_ptr<const PlacedValues> PlacedValues::find(const Layer& layer, const LayoutMap& rules) {
  auto values = std::make_shared<PlacedValues>();
  bool any = false;
  const size_t inputs = layer.built_for().size();
  size_t number = 0;
  for (const ValueSite& site : value_sites(layer)) {
    const bool named = layer.value_names().contains(site.name);
    const std::string path = layer.path() + "/" + site.name;
    std::optional<NamedPlacement> placement;
    if (const auto found = rules.find_value(path, site.rank)) placement = {path, *found};
    any = any || placement;
    if (named) {
      if (placement) values->named_[site.name] = *placement;
    } else if (number++ < inputs) {
      values->inputs_.push_back(placement);
    } else {
      values->outputs_.push_back(placement);
    }
  }
  return any ? values : nullptr;
}

DTensor PlacedValues::resharded(const DTensor& value, const NamedPlacement& target) {
  if (!value.defined()) return value;
  const Layout layout = abstract_layout(target.placement.layout, value.layout());
  // Output shapes may be inferred on another mesh than the model's.
  if (!(value.mesh() == layout.mesh())) return value;
  if (value.rank() != layout.rank()) {
    throw LayoutError(target.path, "a value's layout needs one entry per axis",
                      str("layout ", target.placement.layout.describe(), " for a value of shape ",
                          to_string(value.shape())),
                      "call the layer on values of one rank, or place another value");
  }
  if (value.layout() == layout) return value;
  const CommLabel label(target.path);
  const DTensor moved = ops::relayout(value, layout, target.placement.reshard_after_forward);
  const DTensor mask = value.mask();
  return mask.defined() ? moved.with_mask(mask) : moved;
}

void PlacedValues::reshard_inputs(Inputs& inputs, const Inputs& uncast) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i < inputs_.size() && inputs_[i]) {
      inputs[i] = resharded(inputs[i], *inputs_[i]);
      continue;
    }
    for (size_t j = 0; j < i; ++j) {
      if (uncast[j].id() == uncast[i].id()) inputs[i] = inputs[j];
    }
  }
}

void PlacedValues::reshard_outputs(std::vector<DTensor>& outputs) const {
  for (size_t o = 0; o < std::min(outputs.size(), outputs_.size()); ++o) {
    if (outputs_[o]) outputs[o] = resharded(outputs[o], *outputs_[o]);
  }
}

DTensor PlacedValues::reshard(const std::string& name, const DTensor& value) const {
  const auto it = named_.find(name);
  return it == named_.end() ? value : resharded(value, it->second);
}

std::vector<std::string> PlacedValues::describe() const {
  std::vector<std::string> texts;
  const auto add = [&](const NamedPlacement& target) {
    const std::string again = target.placement.reshard_after_forward ? " reshard" : "";
    texts.push_back(target.path.substr(target.path.rfind('/') + 1) + " " +
                    target.placement.layout.describe() + again);
  };
  for (const auto* const list : {&inputs_, &outputs_}) {
    for (const auto& target : *list) {
      if (target) add(*target);
    }
  }
  for (const auto& [name, target] : named_) add(target);
  return texts;
}

std::vector<std::string> detail::place_layers(Layer& layer, const LayoutMap& layouts) {
  layer.place_weights(layouts);
  std::vector<std::string> paths;
  for (const Variable& weight : layer.weights()) paths.push_back(weight.path());
  const LayoutMap rules = layouts.value_rules(paths);
  std::vector<std::string> layers;
  const std::function<void(Layer&)> place_values_of = [&](Layer& one) {
    one.place_values(rules);
    if (!rules.rules().empty()) {
      for (const ValueSite& site : value_sites(one)) paths.push_back(one.path() + "/" + site.name);
    }
    one.set_remat_rule(layouts.find_remat(one.path()));
    layers.push_back(one.path());
    for (const auto& inner : one.sublayers()) place_values_of(*inner);
  };
  place_values_of(layer);
  layouts.check_remat_used(layers);
  return paths;
}

void Layer::place_values(const LayoutMap& rules) {
  values_ = rules.rules().empty() ? nullptr : PlacedValues::find(*this, rules);
}

/// Explains a MeshError: weights that nothing placed are on the default mesh, others where the last
/// place_weights() put them.
void Layer::check_meshes(const Inputs& inputs) const {
  for (const Variable& weight : weights()) {
    if (inputs.empty() || weight.layout().mesh() == inputs[0].mesh()) continue;
    const std::string mesh = weight.layout().mesh().describe();
    throw MeshError(
        class_name() + " " + path(), "a layer's weights must be on the mesh of its inputs",
        str(weight.path(), weight.placed() ? " placed on " : " on ", mesh, ", inputs on ",
            inputs[0].mesh().describe()),
        weight.placed() ? str("pack() the inputs for the mesh ", mesh,
                              ", on which a model's compile() or place_weights() placed the "
                              "weights last; compile all models that share the layer for one mesh")
                        : "pass the layer to track() of the model or layer that calls it, so that "
                          "compile() places its weights; without a model call place_weights()");
  }
}

std::vector<std::string> Layer::placed_values() const {
  return values_ ? values_->describe() : std::vector<std::string>();
}

bool Layer::places_output() const { return values_ && values_->places_output(); }

DTensor Layer::place_output(const DTensor& value) const {
  // Other values are placed after the bias, so that its gradient is computed from sharded values
  // too.
  if (!places_output() || !value.layout().is_partial()) return value;
  std::vector<DTensor> outputs = {value};
  values_->reshard_outputs(outputs);
  return outputs[0];
}

DTensor Layer::place(const std::string& name, const DTensor& value) const {
  return values_ ? values_->reshard(name, value) : value;
}

}  // namespace tessera
