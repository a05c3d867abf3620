#include <tessera/framework/nn/layer.hpp>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <mutex>
#include <set>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera {

using namespace detail;

namespace {

std::atomic<int64_t> next_serial = 0;

void check_name(const std::string& name) {
  if (name.find('/') == std::string::npos) return;
  throw ConfigError("layer " + name, "a layer's name holds no \"/\"", "\"" + name + "\"",
                    "nest models to get longer paths");
}

/// Once for each layer.
void warn_of_mask(const Layer& layer, const Mesh& mesh) {
  static std::mutex mutex;
  static std::set<int64_t> warned;
  const std::lock_guard lock(mutex);
  if (!warned.insert(layer.serial()).second || !is_first_rank(mesh)) return;
  std::cerr << "Warning: " << layer.class_name() << ' ' << layer.path()
            << " does not support masking: the mask of its input ends here\n";
}

/// Whether a layer is another, or has it inside.
bool holds(const Layer& layer, const Layer& other) {
  const auto& inner = layer.sublayers();
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

bool fits(const Shape& expected, const Shape& shape) {
  return std::equal(expected.begin(), expected.end(), shape.begin(), shape.end(),
                    [](int64_t a, int64_t b) { return a == -1 || a == b; });
}

void check_takes_mask(const Layer& layer) {
  if (layer.is_model() || layer.supports_masking()) return;
  throw ConfigError(layer.class_name() + " " + layer.path(), "the layer does not support masking",
                    "an input with_mask()", "give the mask to a layer that does");
}

DTypePolicy policy_of(const LayerOptions& options) {
  try {
    return dtype_policy(options.dtype);
  } catch (const Error&) {
    if (options.name.empty()) throw;
    rethrow_at("layer " + options.name);
  }
}

}  // namespace

Layer::Layer(const LayerOptions& options)
    : name_(options.name), own_name_(!options.name.empty()), trainable_(options.trainable),
      policy_(policy_of(options)), serial_(next_serial++) {
  check_name(name_);
}

Json Layer::config() const {
  Json json = Json::object();
  json["name"] = name_;
  json["trainable"] = trainable_;
  json["dtype"] = to_string(policy_);
  return json;
}

const CallContext& detail::call_context() {
  static const CallContext outside;
  const CallContext* const context = thread_state().call_context;
  return context ? *context : outside;
}

void Layer::build(const Shapes& inputs) {
  if (built_) return;
  if (name_.empty()) name_ = snake_case(class_name());
  name_sublayers();
  {
    const ScopedValue<bool> building(building_, true);
    if (!is_model()) output_shapes(inputs);
    make_weights(inputs);
  }
  build_sublayers(inputs);
  built_for_ = inputs;
  // The number of samples in a planned call means nothing.
  for (Shape& shape : built_for_) {
    if (is_abstract() && !shape.empty()) shape[0] = -1;
  }
  built_ = true;
}

DTensor Layer::call(const Inputs&, const CallContext&) {
  throw ConfigError(class_name() + " " + path(), "a layer defines call()", "neither call() nor "
                    "call_all()", "override DTensor call(const Inputs&, const CallContext&)");
}

LayerHandle Layer::track(const LayerHandle& handle) {
  if (holds(*handle.layer(), *this)) {
    throw ConfigError(class_name() + " " + path(),
                      str("a ", is_model() ? "model" : "layer", " is no layer of itself"),
                      handle->class_name() + " " + handle->path(), "make another one of it");
  }
  if (!trainable()) handle->set_trainable(false);
  sublayers_.push_back(handle.layer());
  if (building_) {
    // All others have their names.
    std::map<std::string, int64_t> counts;
    name_sublayers(sublayer_prefix(), counts);
  }
  return handle;
}

/// A model's own name is no part of its layers' paths.
std::string Layer::sublayer_prefix() const {
  return is_model() && !in_model() ? "" : path() + "/";
}

void Layer::name_sublayers() {
  // All names below are given by the one that is part of no other.
  if (in_model()) return;
  std::map<std::string, int64_t> counts;
  name_sublayers(sublayer_prefix(), counts);
}

void Layer::name_sublayers(const std::string& prefix, std::map<std::string, int64_t>& counts) {
  const auto order = naming_order();
  std::map<std::string, const Layer*> taken;
  // Names that another model gave may clash here, and then give way.
  for (const bool own : {true, false}) {
    for (const auto& layer : order) {
      if (layer->name().empty() || layer->has_own_name() != own) continue;
      const auto [at, fresh] = taken.emplace(layer->name(), layer.get());
      if (fresh || at->second == layer.get() || !own) continue;
      const char* const kind = is_model() ? "model" : "layer";
      throw ConfigError(str(kind, " ", name()), str("the layers of a ", kind, " differ in name"),
                        "two layers named " + in_quotes(layer->name()), "rename one of them");
    }
  }
  std::set<const Layer*> named;
  for (const auto& layer : order) {
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
    // A plain layer numbers those inside by itself, so that paths say the same wherever it stands.
    std::map<std::string, int64_t> own_counts;
    layer->name_sublayers(prefix + name + "/", layer->is_model() ? counts : own_counts);
  }
}

Shapes Layer::planned_shapes(const Shapes& inputs, int64_t unknown) {
  const NoRecording untaped;
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
    // It reads numbers, which a plan does not have.
    return call();
  }
}

void Layer::build_sublayers(const Shapes& inputs) {
  const auto unbuilt = [](const auto& layer) { return !layer->built(); };
  if (!is_model() && std::none_of(sublayers_.begin(), sublayers_.end(), unbuilt)) return;
  planned_shapes(inputs, 2);
}

Shapes Layer::planned_output_shapes(const Shapes& inputs) const {
  // Planning a call changes nothing but what is not built yet.
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
  // build() asks only whether the inputs fit, which the call will show.
  if (building_) return {};
  const Shapes shapes = planned_output_shapes(inputs);
  if (shapes.size() == 1) return shapes[0];
  throw ShapeError(class_name() + " " + path(), "the layer has one output",
                   str(shapes.size(), " outputs"), "override output_shapes()");
}

std::vector<DTensor> Layer::outputs(const Inputs& inputs, const CallContext& context) {
  if (OpListener* const hears = tracer(); hears && !can_be_replayed()) {
    hears->user_code(str("layer ", class_name(), " (", path(), ")"));
  }
  Shapes shapes;
  for (const DTensor& input : inputs) {
    if (!input.defined()) {
      throw StateError(class_name() + " " + path(), "inputs hold values", "an empty DTensor",
                       "call it on the result of pack() or of an operation");
    }
    shapes.push_back(input.shape());
  }
  if (!built_) build(shapes);
  const ScopedValue<const CallContext*> in_call(thread_state().call_context, &context);
  if (is_model()) return call_all(inputs, context);
  const CommLabel place(path());
  try {
    // Throws for inputs of another shape than it was built for.
    const Shapes expected = shape_from_call_ ? Shapes() : output_shapes(shapes);
    Inputs cast = inputs;
    for (DTensor& input : cast) {
      const bool floating = at::isFloatingType(input.dtype());
      if (!floating || input.dtype() == policy_.compute) continue;
      const DTensor mask = input.mask();
      input = ops::cast(input, policy_.compute);
      if (mask.defined()) input = input.with_mask(mask);
    }
    std::vector<DTensor> results = call_all(cast, context);
    if (!shape_from_call_) check_outputs(expected, results);
    pass_masks(cast, results);
    return results;
  } catch (const MeshError&) {
    check_meshes(inputs);
    rethrow_at(class_name() + " " + path());
  } catch (const Error&) {
    rethrow_at(class_name() + " " + path());
  }
}

void Layer::check_outputs(const Shapes& expected, const std::vector<DTensor>& outputs) const {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i < expected.size() && outputs[i].defined() && fits(expected[i], outputs[i].shape())) {
      continue;
    }
    const std::string wanted = i < expected.size() ? to_string(expected[i]) : "no such output";
    throw ShapeError(class_name() + " " + path(), "call() gives what output_shape() says",
                     str(wanted, " from output_shape(), ",
                         outputs[i].defined() ? to_string(outputs[i].shape()) : "an empty DTensor",
                         " from call()"),
                     "make them equal, or leave output_shape() out");
  }
}

/// Weights that no mesh was given for lie on the default one.
void Layer::check_meshes(const Inputs& inputs) const {
  for (const Variable& weight : weights()) {
    if (weight.layout().mesh() == inputs[0].mesh()) continue;
    throw MeshError(class_name() + " " + path(), "a layer's weights lie on its inputs' mesh",
                    str(weight.path(), " on ", weight.layout().mesh().describe(), ", inputs on ",
                        inputs[0].mesh().describe()),
                    "pass the layer to track() of the model or layer that calls it, so that "
                    "compile() places its weights; without a model call place_weights()");
  }
}

std::vector<DTensor> Layer::masks(const Inputs& inputs, size_t outputs) {
  return std::vector<DTensor>(outputs, inputs.empty() ? DTensor() : inputs[0].mask());
}

void Layer::pass_masks(const Inputs& inputs, std::vector<DTensor>& outputs) {
  const auto masked = [](const DTensor& value) { return value.mask().defined(); };
  if (!supports_masking()) {
    for (const DTensor& input : inputs) {
      if (!masked(input)) continue;
      warn_of_mask(*this, input.mesh());
      // An operation that has nothing to do returns its input, and the mask with it.
      for (DTensor& output : outputs) {
        if (masked(output) && output.mask().is(input.mask())) output = output.with_mask({});
      }
    }
    return;
  }
  if (std::all_of(outputs.begin(), outputs.end(), masked)) return;
  const std::vector<DTensor> all = masks(inputs, outputs.size());
  for (size_t o = 0; o < outputs.size() && o < all.size(); ++o) {
    if (all[o].defined() && !masked(outputs[o])) outputs[o] = outputs[o].with_mask(all[o]);
  }
}

DTensor Layer::operator()(const Inputs& inputs, const CallContext& context) {
  std::vector<DTensor> all = outputs(inputs, context);
  if (all.size() == 1) return std::move(all[0]);
  throw ShapeError(class_name() + " " + path(), "the call has one output",
                   str(all.size(), " outputs"), "use outputs()");
}

std::vector<SymbolicTensor> Layer::outputs(const std::shared_ptr<Layer>& layer,
                                           const std::vector<SymbolicTensor>& inputs) {
  auto node = std::make_shared<Node>();
  Shapes shapes;
  for (const SymbolicTensor& input : inputs) {
    if (!input.defined()) {
      throw StateError(layer->class_name() + " " + layer->path(), "inputs are tensors",
                       "an empty SymbolicTensor", "start from Input()");
    }
    shapes.push_back(input.shape());
  }
  node->layer = layer;
  node->inputs = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].mask().defined()) continue;
    check_takes_mask(*layer);
    node->inputs.push_back(inputs[i].mask());
    node->masked.push_back(i);
  }
  try {
    node->shapes = layer->output_shapes(shapes);
  } catch (const Error&) {
    rethrow_at(layer->class_name() + " " + layer->path());
  }
  node->dtype = layer->dtype_policy().compute;
  node->call = layer->symbolic_calls_++;
  std::vector<SymbolicTensor> list;
  for (size_t i = 0; i < node->shapes.size(); ++i) list.emplace_back(node, i);
  return list;
}

LayerHandle::LayerHandle(std::shared_ptr<Layer> layer) : layer_(std::move(layer)) {
  if (layer_) return;
  throw StateError("LayerHandle", "a handle is to a layer", "a null pointer",
                   "make the layer, with make_layer() if the class is your own");
}

SymbolicTensor SymbolicTensor::with_mask(const SymbolicTensor& mask) const {
  if (!defined() || !mask.defined()) {
    throw StateError("SymbolicTensor::with_mask", "tensor and mask are tensors of a model",
                     "an empty SymbolicTensor", "start from Input()");
  }
  SymbolicTensor same = *this;
  same.mask_ = std::make_shared<SymbolicTensor>(mask);
  return same;
}

SymbolicTensor LayerHandle::operator()(const std::vector<SymbolicTensor>& inputs) const {
  const std::vector<SymbolicTensor> all = outputs(inputs);
  if (all.size() == 1) return all[0];
  throw ShapeError(layer_->class_name() + " " + layer_->path(), "the call has one output",
                   str(all.size(), " outputs"), "use outputs()");
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
    // Added to a loss on the mesh of the batch.
    const bool elsewhere = use && !(use->mesh() == weight.layout().mesh());
    if (OpListener* const hears = tracer(); hears && !regularizer->can_be_replayed()) {
      hears->user_code("the regularizer of " + weight.path());
    }
    list.push_back((*regularizer)(elsewhere ? weight.read() : weight.value()));
  }
  return list;
}

void Layer::add_loss(const DTensor& loss) {
  traced(std::span(&loss, 1),
         [this](std::span<const DTensor> in) { losses_.push_back(in[0]); });
}

void Layer::load_assets(const LayerAssets& assets) {
  if (assets.empty()) return;
  throw ConfigError(str(class_name(), " ", path()), "the layer has files of its own",
                    "a file " + in_quotes(assets.begin()->first), "load an export of this model");
}

void Layer::clear_losses() {
  losses_.clear();
  for (const auto& inner : sublayers()) inner->clear_losses();
}

void Layer::set_path(const std::string& name, const std::string& path) {
  check_name(name);
  const size_t old = this->path().size() + 1;
  for (Variable& weight : weights_) weight.set_path(path + "/" + weight.path().substr(old));
  name_ = name;
  path_ = path;
  for (const auto& layer : sublayers_) {
    if (!layer->name().empty()) layer->set_path(layer->name(), path + "/" + layer->name());
  }
}

void Layer::set_trainable(bool trainable) {
  trainable_ = trainable;
  for (Variable& weight : weights_) weight.set_trainable(trainable && weight.spec().trainable);
  for (const auto& layer : sublayers_) layer->set_trainable(trainable);
}

std::vector<Variable> Layer::weights() const {
  std::vector<Variable> list = weights_;
  std::set<uint64_t> seen;
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

Variable Layer::add_weight(const std::string& name, const Shape& shape,
                           const InitializerHandle& initializer, const WeightOptions& options) {
  Variable weight(VariableSpec{path() + "/" + name, shape,
                               options.dtype.value_or(policy_.variable), initializer,
                               {global_seed(), 0}, options.trainable, options.regularizer,
                               options.constraint});
  weight.set_trainable(options.trainable && trainable_);
  weights_.push_back(weight);
  return weight;
}

void Layer::penalize(const RegularizerHandle& regularizer, const DTensor& y) {
  if (regularizer && y.size(0) > 0) add_loss((*regularizer)(y) / static_cast<double>(y.size(0)));
}

const Shape& Layer::single_input(const Shapes& inputs) const {
  if (inputs.size() == 1) return inputs[0];
  throw ShapeError(class_name() + " " + path(), "it is called on one tensor",
                   str(inputs.size(), " inputs"), "join them first");
}

void Layer::set_weight_layout(const std::string& weight, const LayoutSpec& layout) {
  weight_layouts_[weight] = layout;
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
        throw LayoutError(weight.path(), str("its layout argument names ", weight.shape().size(),
                          " axes"), placement.layout.describe(), "give one entry for each axis");
      }
    } else {
      placement = layouts.find(weight.path(), weight.shape(),
                               kernel.layout.defined() ? &kernel : nullptr);
    }
    weight.place(placement);
    // Vectors follow the layer's first matrix.
    if (!kernel.layout.defined() && weight.shape().size() > 1) kernel = placement;
  }
  for (const auto& layer : sublayers_) layer->place_weights(layouts);
}

}  // namespace tessera
