#include <tessera/framework/model/sequential.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/model/config.hpp>

namespace tessera {

using namespace detail;

SequentialModel::SequentialModel(const std::vector<LayerHandle>& layers,
                                 const SequentialOptions& options)
    : Model({options.name, options.dtype, options.trainable}) {
  for (const LayerHandle& layer : layers) add(layer);
}

Json SequentialModel::config() const {
  Json json = Json::object();
  json["name"] = name();
  json["trainable"] = trainable();
  json["dtype"] = to_string(dtype_policy());
  json["layers"] = Json::array();
  if (input_) json["layers"].push_back(serialize_layer(*input_));
  for (const auto& layer : sublayers()) json["layers"].push_back(serialize_layer(*layer));
  return json;
}

Shapes SequentialModel::output_shapes(const Shapes& inputs) const {
  Shape shape = input_ ? input_->output_shape(inputs) : single_input(inputs);
  for (const auto& layer : sublayers()) shape = layer->output_shape({shape});
  return {shape};
}

void SequentialModel::add(const LayerHandle& layer) {
  if (const auto* input = dynamic_cast<const InputLayer*>(layer.layer().get())) {
    if (!sublayers().empty() || !batch_shape_.empty()) {
      throw ConfigError(
          "Sequential " + path(), "an Input must be the first of the layers",
          sublayers().empty() ? "a second one" : str("one after ", sublayers().size(), " layers"),
          "pass one Input, as the first layer");
    }
    input_ = layer.layer();
    if (input_->name().empty()) input_->set_path("input_layer", "input_layer");
    batch_shape_ = input->batch_shape();
    begin_ = end_ = outputs(input_, {})[0];
    return;
  }
  if (!batch_shape_.empty() && !in_model()) {
    grow(layer);
    return;
  }
  if (built()) {
    throw StateError("Sequential " + path(), "layers must be added before the model is built",
                     layer->class_name(), "add it first, or make a new model of these layers");
  }
  track(layer);
}

LayerHandle SequentialModel::pop() {
  if (compiled()) {
    throw StateError("Sequential " + path(), "layers must be removed before compile()",
                     "a compiled model", "load or make it without compile()");
  }
  LayerHandle last = untrack_last();
  // The graph now ends at that layer's input. It is copied, since end_ owns the node that holds it.
  if (end_.defined() && end_.node()->layer == last.layer()) {
    end_ = SymbolicTensor(end_.node()->inputs[0]);
  }
  return last;
}

/// Adds a layer to a model that begins with an Input, and builds it.
void SequentialModel::grow(const LayerHandle& layer) {
  track(layer);
  if (!built()) {
    build({batch_shape_});
  } else {
    name_last_sublayer();
    layer->build({end_.shape()});
  }
  end_ = layer(end_);
}

void SequentialModel::check_graph() const {
  if (begin_.defined()) return;
  throw StateError("Sequential " + path(), "a model with a graph must begin with an Input", "none",
                   "pass an Input as the first layer");
}

std::vector<SymbolicTensor> SequentialModel::symbolic_inputs() const {
  check_graph();
  return {begin_};
}

std::vector<SymbolicTensor> SequentialModel::symbolic_outputs() const {
  check_graph();
  return {end_};
}

void SequentialModel::build_sublayers(const Shapes& inputs) {
  Shape shape = single_input(inputs);
  for (const auto& layer : sublayers()) {
    layer->build({shape});
    shape = layer->output_shape({shape});
  }
}

DTensor SequentialModel::call(const Inputs& inputs, const CallContext& context) {
  if (inputs.size() != 1) {
    throw ShapeError("Sequential " + path(), "the model takes one input",
                     str(inputs.size(), " inputs"), "use a Functional model for several");
  }
  DTensor value = input_ ? (*input_)(inputs, context) : inputs[0];
  for (const auto& layer : sublayers()) value = (*layer)(value, context);
  return value;
}

Sequential::Sequential(std::initializer_list<LayerHandle> layers, const SequentialOptions& options)
    : Sequential(std::vector<LayerHandle>(layers), options) {}

Sequential::Sequential(const std::vector<LayerHandle>& layers, const SequentialOptions& options)
    : ModelHandle(std::make_shared<SequentialModel>(layers, options)) {}

void Sequential::add(const LayerHandle& layer) const {
  static_cast<SequentialModel&>(model()).add(layer);
}

LayerHandle Sequential::pop() const { return static_cast<SequentialModel&>(model()).pop(); }

}  // namespace tessera
