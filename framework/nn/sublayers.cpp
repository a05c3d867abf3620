#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include <re2/re2.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/nn/internal/layer_states.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Whether `layer` is `other` or contains it.
bool holds(const Layer& layer, const Layer& other) {
  const auto& inner = layer.sublayers();
  return &layer == &other || std::any_of(inner.begin(), inner.end(),
                                         [&](const auto& one) { return holds(*one, other); });
}

/// Returns the layers with states inside `layer` and their values, empty if they have none yet, and
/// sets them as before the first call.
std::vector<std::pair<HasStates*, std::vector<DTensor>>> take_states(Layer& layer) {
  std::vector<std::pair<HasStates*, std::vector<DTensor>>> taken;
  for (const auto& [path, has] : layers_with_states(layer)) {
    taken.emplace_back(has, std::vector<DTensor>());
    for (const LayerState& state : has->states()) {
      if (state.variable.defined()) taken.back().second.push_back(state.variable.value());
    }
    has->set_states({});
  }
  return taken;
}

/// Returns "dense", "dense_1", …
std::string numbered_name(const std::string& base, int64_t number) {
  return number == 0 ? base : str(base, "_", number);
}

/// Returns zeros of these shapes, each -1 replaced by `unknown`.
Inputs zeros_of(const Shapes& shapes, int64_t unknown, at::ScalarType dtype) {
  Inputs zeros;
  for (Shape shape : shapes) {
    std::replace(shape.begin(), shape.end(), int64_t{-1}, unknown);
    zeros.push_back(filled(shape, 0, dtype));
  }
  return zeros;
}

}  // namespace

LayerHandle Layer::track(const LayerHandle& handle) {
  if (holds(*handle.layer(), *this)) {
    throw ConfigError(class_name() + " " + path(),
                      str("a ", is_model() ? "model" : "layer", " cannot contain itself"),
                      handle->class_name() + " " + handle->path(), "create another instance");
  }
  if (!trainable()) handle->set_trainable(false);
  sublayers_.push_back(handle.layer());
  attributes_.emplace_back();
  // The other sublayers were named before the build.
  if (building_) name_last_sublayer(sublayer_prefix());
  return handle;
}

LayerHandle Layer::track(const std::string& attribute, const LayerHandle& handle) {
  const bool is_name = RE2::FullMatch(attribute, "[A-Za-z_][A-Za-z0-9_]*");
  if (!is_name || std::count(attributes_.begin(), attributes_.end(), attribute) > 0) {
    throw ConfigError(class_name() + " " + path(), "attributes are unique Python identifiers",
                      in_quotes(attribute) + (is_name ? " twice" : ""),
                      "write letters, digits and underscores, once");
  }
  track(handle);
  attributes_.back() = attribute;
  return handle;
}

LayerHandle Layer::untrack_last() {
  if (sublayers_.empty()) {
    throw StateError(class_name() + " " + path(), "there must be a layer to remove", "no layers",
                     "add one first");
  }
  const std::shared_ptr<Layer> last = sublayers_.back();
  sublayers_.pop_back();
  attributes_.pop_back();
  names_ = {};
  return last;
}

/// Returns the prefix of the sublayers' paths, in which an outermost model's name is left out.
std::string Layer::sublayer_prefix() const { return is_model() && !in_model() ? "" : path() + "/"; }

void Layer::name_sublayers() {
  // The outermost layer or model names all layers below it.
  if (in_model()) return;
  std::map<std::string, int64_t> counts;
  name_sublayers(sublayer_prefix(), counts);
}

void Layer::name_last_sublayer() {
  if (!in_model()) name_last_sublayer(sublayer_prefix());
}

void Layer::name_last_sublayer(const std::string& prefix) {
  Layer& layer = *sublayers_.back();
  std::string name = layer.name();
  const auto same_name = names_.layers.find(name);
  const bool clash = same_name != names_.layers.end() && same_name->second != &layer;
  std::map<std::string, int64_t> counts, own_counts;
  if (clash || names_.count + 1 != sublayers_.size() || names_.renames != renamed_layers()) {
    name_sublayers(prefix, counts);
    return;
  }
  if (name.empty()) {
    const std::string base = snake_case(layer.class_name());
    int64_t& number = names_.numbers[base];
    do {
      name = numbered_name(base, number++);
    } while (!names_.layers.emplace(name, &layer).second);
    counts[base] = number;
  }
  names_.layers.emplace(name, &layer);
  ++names_.count;
  layer.set_path(name, prefix + name);
  layer.name_sublayers(prefix + name + "/", layer.is_model() ? counts : own_counts);
}

void Layer::name_sublayers(const std::string& prefix, std::map<std::string, int64_t>& counts) {
  const auto order = naming_order();
  std::map<std::string, const Layer*> layers_by_name;
  // Names assigned by another model may clash here; such a layer is then renamed.
  for (const bool own : {true, false}) {
    for (const auto& layer : order) {
      if (layer->name().empty() || layer->has_own_name() != own) continue;
      const auto [it, inserted] = layers_by_name.emplace(layer->name(), layer.get());
      if (inserted || it->second == layer.get() || !own) continue;
      const char* const kind = is_model() ? "model" : "layer";
      throw ConfigError(str(kind, " ", name()), str("layer names are unique within a ", kind),
                        "two layers named " + in_quotes(layer->name()), "rename one of them");
    }
  }
  std::set<const Layer*> named;
  for (const auto& layer : order) {
    if (!named.insert(layer.get()).second) continue;
    std::string name = layer->name();
    if (!name.empty() && layers_by_name.at(name) != layer.get()) name.clear();
    while (name.empty()) {
      const std::string base = snake_case(layer->class_name());
      const std::string next = numbered_name(base, counts[base]++);
      if (layers_by_name.emplace(next, layer.get()).second) name = next;
    }
    layer->set_path(name, prefix + name);
    // A plain layer numbers its sublayers from 0, so that their names do not depend on its
    // siblings.
    std::map<std::string, int64_t> own_counts;
    layer->name_sublayers(prefix + name + "/", layer->is_model() ? counts : own_counts);
  }
  names_ = {std::move(layers_by_name), {}, sublayers_.size(), renamed_layers()};
}

Shapes Layer::planned_shapes(const Shapes& inputs, int64_t unknown) {
  const NoRecording no_tape;
  const ScopedValue<CommLog*> not_logged(thread_state().comm_log, nullptr);
  // Weights that were placed before are used where they are.
  const std::vector<Variable> placed = weights();
  std::optional<DefaultMeshScope> mesh;
  if (!placed.empty()) mesh.emplace(placed[0].layout().mesh());
  const CallContext inference;
  const ScopedValue<const CallContext*> in_call(thread_state().call_context, &inference);
  const auto call = [&] {
    Shapes shapes;
    const Inputs zeros = zeros_of(inputs, unknown, policy_.compute);
    for (const DTensor& output : call_all(zeros, inference)) shapes.push_back(output.shape());
    clear_losses();
    return shapes;
  };
  try {
    const AbstractScope plans_only(default_mesh());
    return call();
  } catch (const StateError&) {
    // call() reads values, which an abstract call does not have.
    const auto states = take_states(*this);
    const Shapes shapes = call();
    for (const auto& [layer, values] : states) layer->set_states(values);
    return shapes;
  }
}

void Layer::build_sublayers(const Shapes& inputs) {
  const auto unbuilt = [](const auto& layer) { return !layer->built(); };
  if (!is_model() && std::none_of(sublayers_.begin(), sublayers_.end(), unbuilt)) return;
  planned_shapes(inputs, 2);
}

Shapes Layer::planned_output_shapes(const Shapes& inputs) const {
  // Planning a call builds the layer and changes nothing else.
  Layer& self = const_cast<Layer&>(*this);
  if (!built()) self.build(inputs);
  Shapes shapes = self.planned_shapes(inputs, 2);
  const Shapes others = self.planned_shapes(inputs, 3);
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (size_t a = 0; a < shapes[i].size(); ++a) {
      if (shapes[i][a] != others[i][a]) shapes[i][a] = -1;
    }
  }
  return shapes;
}

Shape Layer::output_shape(const Shapes& inputs) const {
  if (!shape_from_call_) shape_from_call_ = true;
  // build() only checks that the inputs fit; the planned call will do that.
  if (building_) return {};
  const Shapes shapes = planned_output_shapes(inputs);
  if (shapes.size() == 1) return shapes[0];
  throw ShapeError(class_name() + " " + path(), "the layer has one output",
                   str(shapes.size(), " outputs"), "override output_shapes()");
}

void Layer::set_trainable(bool trainable) {
  trainable_ = trainable;
  for (Variable& weight : weights_) weight.set_trainable(trainable && weight.spec().trainable);
  for (const auto& layer : sublayers_) layer->set_trainable(trainable);
}

std::vector<Variable> Layer::weights() const {
  std::vector<Variable> list = weights_;
  // Whatever was frozen since, as in Keras.
  std::stable_partition(list.begin(), list.end(),
                        [](const Variable& weight) { return weight.spec().trainable; });
  std::set<uint64_t> seen;
  for (const Variable& weight : list) seen.insert(weight.id());
  for (const auto& layer : sublayers_) {
    for (const Variable& weight : layer->weights()) {
      if (seen.insert(weight.id()).second) list.push_back(weight);
    }
  }
  return list;
}

std::vector<Variable> Layer::trainable_weights() const {
  std::vector<Variable> list;
  for (const Variable& weight : weights()) {
    if (weight.trainable()) list.push_back(weight);
  }
  return list;
}

int64_t Layer::count_params() const {
  int64_t count = 0;
  for (const Variable& weight : weights()) count += numel(weight.shape());
  return count;
}

std::vector<DTensor> Layer::losses() const {
  std::vector<DTensor> list;
  std::set<const Layer*> seen;
  const std::function<void(const Layer&)> visit = [&](const Layer& layer) {
    if (!seen.insert(&layer).second) return;
    list.insert(list.end(), layer.losses_.begin(), layer.losses_.end());
    for (const auto& inner : layer.sublayers()) visit(*inner);
  };
  visit(*this);
  for (const Variable& weight : trainable_weights()) {
    const RegularizerHandle& regularizer = weight.spec().regularizer;
    if (!regularizer) continue;
    const auto& use = weight.placement().use;
    // The penalty is added to a loss on the batch's mesh, so read the weight there.
    const bool elsewhere = use && !(use->mesh() == weight.layout().mesh());
    if (OpListener* const listener = tracer(); listener && !regularizer->can_be_replayed()) {
      listener->user_code("the regularizer of " + weight.path());
    }
    list.push_back((*regularizer)(elsewhere ? weight.read() : weight.value()));
  }
  return list;
}

void Layer::clear_losses() {
  losses_.clear();
  for (const auto& inner : sublayers()) inner->clear_losses();
}

void Layer::place_weights(const LayoutMap& layouts) {
  Placement kernel;
  for (Variable& weight : weights_) {
    const std::string name = weight.path().substr(path().size() + 1);
    const auto own = weight_layouts_.find(name);
    Placement placement;
    if (own != weight_layouts_.end()) {
      placement = {weight.shape(), Layout(own->second, layouts.mesh())};
      if (placement.layout.rank() != static_cast<int64_t>(weight.shape().size())) {
        throw LayoutError(weight.path(),
                          str("its layout argument names ", weight.shape().size(), " axes"),
                          placement.layout.describe(), "give one entry for each axis");
      }
    } else {
      placement =
          layouts.find(weight.path(), weight.shape(), kernel.layout.defined() ? &kernel : nullptr);
    }
    Placement placed = weight.trainable() ? layouts.fully_sharded(placement) : placement;
    placed.slots_in = layouts.memory().slots;
    weight.place(placed);
    // Biases and other vectors follow the layer's first weight of rank 2 or more.
    if (!kernel.layout.defined() && weight.shape().size() > 1) kernel = placement;
  }
  for (const auto& layer : sublayers_) layer->place_weights(layouts);
}

}  // namespace tessera
