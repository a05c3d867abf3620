#include <tessera/framework/model/model.hpp>

#include <algorithm>

#include <re2/re2.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/nn/internal/lora_layer.hpp>
#include <tessera/framework/nn/internal/missing_call.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

using namespace detail;

Model::Model(const LayerOptions& options)
    : Layer(options), Trainer(static_cast<Layer&>(*this), *this) {}
Model::~Model() = default;

void Model::build_sublayers(const Shapes& inputs) {
  try {
    Layer::build_sublayers(inputs);
  } catch (const MissingCall&) {
    if (!build_by_step()) throw;
  }
}

std::vector<std::shared_ptr<Layer>> Model::layers() const {
  std::vector<std::shared_ptr<Layer>> list = sublayers();
  std::erase_if(list, [](const auto& layer) { return layer->is_operation(); });
  return list;
}

std::shared_ptr<Layer> Model::get_layer(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& layer : layers()) {
    if (layer->name() == name) return layer;
    names.push_back(layer->name());
  }
  throw ConfigError("model " + this->name(), "the layer must be one of the model's",
                    in_quotes(name), suggestion(name, names));
}

std::shared_ptr<Layer> Model::get_layer(int64_t index) const {
  const std::vector<std::shared_ptr<Layer>> list = layers();
  const auto count = static_cast<int64_t>(list.size());
  if (index >= 0 && index < count) return list[static_cast<size_t>(index)];
  throw ConfigError("model " + name(),
                    str("the index must be that of one of the model's ", count, " layers"),
                    std::to_string(index), "count from 0");
}

std::vector<at::Tensor> Model::get_weights() const {
  std::vector<at::Tensor> values;
  for (const Variable& weight : weights()) values.push_back(weight.value().full().clone());
  return values;
}

void Model::set_weights(const std::vector<at::Tensor>& values) {
  std::vector<Variable> list = weights();
  if (!built()) {
    throw StateError("set_weights", "the model must be built",
                     "a model whose weights are not known yet",
                     "call build() with an input shape first");
  }
  if (values.size() != list.size()) {
    throw ShapeError("set_weights",
                     str("there must be a value for each of the ", list.size(), " weights"),
                     str(values.size(), " values"), "pass them in the order of weights()");
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const bool fits = values[i].defined() && values[i].sizes() == at::IntArrayRef(list[i].shape());
    if (fits) continue;
    throw ShapeError("set_weights, " + list[i].path(),
                     "the value must have shape " + to_string(list[i].shape()),
                     values[i].defined() ? to_string(values[i].sizes().vec()) : "an empty tensor",
                     "pass the values in the order of weights()");
  }
  for (size_t i = 0; i < list.size(); ++i) list[i].assign(pack(values[i], list[i].layout()));
}

namespace {

/// Adds the layers below `layer` that have no layers themselves, each once.
void add_leaves(const Layer& layer, std::vector<std::shared_ptr<Layer>>& leaves) {
  for (const auto& inner : layer.sublayers()) {
    add_leaves(*inner, leaves);
    const bool known = std::find(leaves.begin(), leaves.end(), inner) != leaves.end();
    if (inner->sublayers().empty() && !known) leaves.push_back(inner);
  }
}

}  // namespace

void Model::quantize(const std::string& mode) {
  if (!built()) {
    throw StateError("quantize", "the model is built", "a model whose weights are not known yet",
                     "call build() with an input shape first");
  }
  std::vector<std::shared_ptr<Layer>> leaves;
  add_leaves(*this, leaves);
  // Nothing is changed unless all can be.
  for (const auto& layer : leaves) {
    if (!layer->is_quantized()) {
      quantized_policy(mode, layer->can_be_quantized() ? layer->dtype_policy() : DTypePolicy());
      continue;
    }
    throw StateError("quantize", "a model is quantized once",
                     str(layer->class_name(), " ", layer->path(), " with dtype policy ",
                         to_string(layer->dtype_policy())),
                     "quantize the floating model");
  }
  for (const auto& layer : leaves) {
    if (layer->can_be_quantized()) layer->quantize(mode);
  }
  place_replaced_weights();
}

void Model::enable_lora(const std::string& layers, int64_t rank, const LoraOptions& options) {
  if (!built()) {
    throw StateError("enable_lora", "the model is built", "a model whose weights are not known yet",
                     "call build() with an input shape first");
  }
  const re2::RE2 expression(layers, re2::RE2::Quiet);
  if (!expression.ok()) {
    throw ConfigError("enable_lora", "an RE2 expression",
                      str(in_quotes(layers), ": ", expression.error()),
                      "put a backslash before special characters");
  }
  std::vector<std::shared_ptr<Layer>> leaves;
  add_leaves(*this, leaves);
  const auto is_meant = [&](const auto& layer) {
    return layer->can_have_lora() && re2::RE2::FullMatch(layer->path(), expression);
  };
  std::vector<std::string> paths;
  bool matches = false;
  for (const auto& layer : leaves) {
    if (!layer->can_have_lora()) continue;
    paths.push_back(layer->path());
    if (!is_meant(layer)) continue;
    matches = true;
    // Nothing is changed unless all can be.
    dynamic_cast<const LoraLayer&>(*layer).check_adapter(rank, options);
  }
  if (!matches) {
    throw ConfigError("enable_lora", "an expression that matches the path of a layer with a kernel",
                      in_quotes(layers), suggestion(layers, paths));
  }
  for (const auto& layer : leaves) {
    if (is_meant(layer)) layer->enable_lora(rank, options);
  }
  train_adapters_only(*this);
  place_replaced_weights();
}

Shape Model::output_shape(const Shapes& inputs) const {
  const Shapes shapes = output_shapes(inputs);
  if (shapes.size() == 1) return shapes[0];
  throw ShapeError(class_name() + " " + path(), "the model must have one output",
                   str(shapes.size(), " outputs"), "use output_shapes()");
}

ModelHandle::ModelHandle(std::shared_ptr<Model> model)
    : LayerHandle(model), model_(std::move(model)) {}

std::vector<LayerHandle> ModelHandle::layers() const {
  const auto layers = model_->layers();
  return {layers.begin(), layers.end()};
}

}  // namespace tessera
