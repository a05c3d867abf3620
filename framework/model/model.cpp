#include <tessera/framework/model/model.hpp>

#include <algorithm>
#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/nn/weights_file.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Whether a layer is another, or has it among its layers.
bool holds(const Layer& layer, const Layer& other) {
  const auto inner = layer.sublayers();
  return &layer == &other || std::any_of(inner.begin(), inner.end(), [&](const auto& one) {
           return holds(*one, other);
         });
}

/// Zeros of these shapes, with `unknown` for extents that are not known.
Inputs zeros_of(const Shapes& shapes, int64_t unknown, at::ScalarType dtype) {
  Inputs zeros;
  for (Shape shape : shapes) {
    std::replace(shape.begin(), shape.end(), int64_t{-1}, unknown);
    zeros.push_back(filled(shape, 0, dtype));
  }
  return zeros;
}

}  // namespace

Model::Model(const LayerOptions& options)
    : Layer(options), Trainer(static_cast<Layer&>(*this), *this) {}
Model::~Model() = default;

void Model::save_weights(const std::string& path) const { tessera::save_weights(*this, path); }
void Model::load_weights(const std::string& path) { tessera::load_weights(*this, path); }

std::shared_ptr<Layer> Model::get_layer(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& layer : layers_) {
    if (layer->name() == name) return layer;
    names.push_back(layer->name());
  }
  throw ConfigError("model " + this->name(), "the layer is one of the model's", in_quotes(name),
                    suggestion(name, names));
}

std::shared_ptr<Layer> Model::get_layer(int64_t index) const {
  const auto count = static_cast<int64_t>(layers_.size());
  if (index >= 0 && index < count) return layers_[static_cast<size_t>(index)];
  throw ConfigError("model " + name(), str("a place among the model's ", count, " layers"),
                    std::to_string(index), "count from 0");
}

std::vector<Variable> Model::weights() const {
  std::vector<Variable> list = Layer::weights();
  std::set<uint64_t> seen;
  for (const auto& layer : layers_) {
    for (const Variable& weight : layer->weights()) {
      if (seen.insert(weight.id()).second) list.push_back(weight);
    }
  }
  return list;
}

std::vector<at::Tensor> Model::get_weights() const {
  std::vector<at::Tensor> values;
  for (const Variable& weight : weights()) values.push_back(weight.value().full().clone());
  return values;
}

void Model::set_weights(const std::vector<at::Tensor>& values) {
  std::vector<Variable> list = weights();
  if (!built()) {
    throw StateError("set_weights", "the model is built", "a model whose weights are not known yet",
                     "call build() with an input shape first");
  }
  if (values.size() != list.size()) {
    throw ShapeError("set_weights", str("a value for each of the ", list.size(), " weights"),
                     str(values.size(), " values"), "give them in the order of weights()");
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const bool fits = values[i].defined() && values[i].sizes() == at::IntArrayRef(list[i].shape());
    if (fits) continue;
    throw ShapeError("set_weights, " + list[i].path(), "shape " + to_string(list[i].shape()),
                     values[i].defined() ? to_string(values[i].sizes().vec()) : "an empty tensor",
                     "give them in the order of weights()");
  }
  for (size_t i = 0; i < list.size(); ++i) list[i].assign(pack(values[i], list[i].layout()));
}

void Model::set_trainable(bool trainable) {
  Layer::set_trainable(trainable);
  for (const auto& layer : layers_) layer->set_trainable(trainable);
}

void Model::set_path(const std::string& name, const std::string& path) {
  Layer::set_path(name, path);
  for (const auto& layer : layers_) {
    if (!layer->name().empty()) layer->set_path(layer->name(), path + "/" + layer->name());
  }
}

void Model::place_weights(const LayoutMap& layouts) {
  Layer::place_weights(layouts);
  for (const auto& layer : layers_) layer->place_weights(layouts);
}

LayerHandle Model::track(const LayerHandle& handle) {
  if (holds(*handle.layer(), *this)) {
    throw ConfigError(class_name() + " " + path(), "a model is no layer of itself",
                      handle->class_name() + " " + handle->path(), "make another model of it");
  }
  if (!trainable()) handle->set_trainable(false);
  layers_.push_back(handle.layer());
  return handle;
}

/// Numbers unnamed layers within the root model and gives all layers their paths. Only the root
/// does this: it is the model that no other has named.
void Model::name_parts() {
  if (in_model()) return;
  std::map<std::string, int64_t> counts;
  name_layers("", counts);
}

void Model::name_layers(const std::string& prefix, std::map<std::string, int64_t>& counts) {
  std::map<std::string, const Layer*> taken;
  // Names that another model gave may clash here, and then give way.
  for (const bool own : {true, false}) {
    for (const auto& layer : naming_order()) {
      if (layer->name().empty() || layer->has_own_name() != own) continue;
      const auto [at, fresh] = taken.emplace(layer->name(), layer.get());
      if (fresh || at->second == layer.get() || !own) continue;
      throw ConfigError("model " + name(), "the layers of a model differ in name",
                        "two layers named " + in_quotes(layer->name()), "rename one of them");
    }
  }
  std::set<const Layer*> named;
  for (const auto& layer : naming_order()) {
    if (!named.insert(layer.get()).second) continue;
    std::string name = layer->name();
    if (!name.empty() && taken.at(name) != layer.get()) name.clear();
    while (name.empty()) {
      const std::string base = snake_case(layer->class_name());
      const int64_t number = counts[base]++;
      const std::string next = number == 0 ? base : str(base, "_", number);
      if (taken.emplace(next, layer.get()).second) name = next;
    }
    layer->set_path(name, prefix + name);
    if (auto* inner = dynamic_cast<Model*>(layer.get())) {
      inner->name_layers(prefix + name + "/", counts);
    }
  }
}

Shape Model::output_shape(const Shapes& inputs) const {
  const Shapes shapes = output_shapes(inputs);
  if (shapes.size() == 1) return shapes[0];
  throw ShapeError(class_name() + " " + path(), "the model has one output",
                   str(shapes.size(), " outputs"), "use output_shapes()");
}

Mesh Model::working_mesh() const { return default_mesh(); }

/// Shapes of the outputs if unknown extents are `unknown`.
Shapes Model::planned_shapes(const Shapes& inputs, int64_t unknown) {
  const Mesh mesh = working_mesh();
  const AbstractScope plans_only(mesh);
  const NoRecording untaped;
  const Inputs zeros = zeros_of(inputs, unknown, dtype_policy().compute);
  Shapes shapes;
  for (const DTensor& output : call_all(zeros, {})) shapes.push_back(output.shape());
  clear_losses();
  return shapes;
}

void Model::make_weights(const Shapes& inputs) {
  build_layers(inputs);
}

void Model::build_layers(const Shapes& inputs) {
  try {
    planned_shapes(inputs, 2);
  } catch (const StateError&) {
    const NoRecording untaped;
    call_all(zeros_of(inputs, 1, dtype_policy().compute), {});
    clear_losses();
  }
}

Shapes Model::output_shapes(const Shapes& inputs) const {
  // Planning a call changes nothing but what is not built yet.
  Model& self = const_cast<Model&>(*this);
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

ModelHandle::ModelHandle(std::shared_ptr<Model> model)
    : LayerHandle(model), model_(std::move(model)) {}

std::vector<LayerHandle> ModelHandle::layers() const {
  const auto layers = model_->sublayers();
  return {layers.begin(), layers.end()};
}

}  // namespace tessera
