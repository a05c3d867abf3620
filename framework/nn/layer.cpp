#include <tessera/framework/nn/layer.hpp>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/nn/dtype_policy_map.hpp>
#include <tessera/framework/nn/internal/gathered_weights.hpp>
#include <tessera/framework/nn/internal/layer_remat.hpp>
#include <tessera/framework/nn/internal/lora_layer.hpp>
#include <tessera/framework/nn/internal/missing_call.hpp>
#include <tessera/framework/nn/internal/placed_values.hpp>
#include <tessera/framework/nn/metric.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera {

using namespace detail;

namespace {

std::atomic<int64_t> next_serial = 0, renames = 0;

void check_name(const std::string& name) {
  if (name.find('/') == std::string::npos) return;
  throw ConfigError("layer " + name, "a layer's name holds no \"/\"", "\"" + name + "\"",
                    "nest models to get longer paths");
}

/// Warns that `layer` drops its input's mask; once for each layer.
void warn_of_mask(const Layer& layer, const Mesh& mesh) {
  static std::mutex mutex;
  static std::set<int64_t> warned;
  const std::lock_guard lock(mutex);
  if (!warned.insert(layer.serial()).second || !is_first_rank(mesh)) return;
  std::cerr << "Warning: " << layer.class_name() << ' ' << layer.path()
            << " does not support masking: the mask of its input ends here\n";
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

/// Makes the mesh of the inputs the default one, so that values that call() makes are on it.
std::optional<DefaultMeshScope> mesh_of_call(const Inputs& inputs) {
  if (inputs.empty() || is_abstract() || inputs[0].mesh() == default_mesh()) return std::nullopt;
  return std::optional<DefaultMeshScope>(std::in_place, inputs[0].mesh());
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
    : name_(options.name),
      own_name_(!options.name.empty()),
      trainable_(options.trainable),
      policy_(policy_of(options)),
      serial_(next_serial++) {
  check_name(name_);
  remat_ = thread_state().layer_remat;
  if (options.dtype.empty()) policies_ = dtype_policy_map();
  resolve_policy();
}

void Layer::resolve_policy() {
  if (policies_ && !built_ && !path().empty()) policy_ = policies_->find(path());
}

void Layer::quantize(const std::string& mode) {
  const std::string where = class_name() + " " + path();
  if (!built_) {
    throw StateError(where, "a layer is built before it is quantized", "a layer without weights",
                     "call it, or build() with an input shape, first");
  }
  if (is_quantized()) {
    throw StateError(where, "a layer is quantized once", "dtype policy " + to_string(policy_),
                     "quantize the floating layer");
  }
  const DTypePolicy policy = quantized_policy(mode, policy_);
  if (!can_be_quantized()) {
    throw ConfigError(where, "the class can be quantized, as Dense, EinsumDense and Embedding can",
                      in_quotes(class_name()), "quantize() the model, which leaves it as it is");
  }
  const NoRecording no_tape;
  quantize_weights();
  policy_ = policy;
}

void Layer::replace_weight(Variable& weight, const DTensor& value) {
  VariableSpec spec = weight.spec();
  spec.dtype = value.dtype();
  spec.initializer = "zeros";
  spec.trainable = false;
  spec.regularizer = {};
  spec.constraint = {};
  Variable replacement(std::move(spec));
  replacement.place(weight.placement());
  replacement.assign(value);
  std::replace_if(
      weights_.begin(), weights_.end(), [&](const Variable& own) { return own.is(weight); },
      replacement);
  weight = replacement;
}

Variable Layer::add_value(const std::string& name, const DTensor& value) {
  Variable weight =
      add_weight(name, value.shape(), "ones", {.trainable = false, .dtype = value.dtype()});
  weight.place({value.shape(), Layout::replicated(value.mesh(), value.rank())});
  weight.assign(value);
  return weight;
}

void Layer::remove_weights(const std::vector<Variable>& weights) {
  std::erase_if(weights_, [&](const Variable& own) {
    return std::any_of(weights.begin(), weights.end(),
                       [&](const Variable& weight) { return weight.is(own); });
  });
}

void Layer::enable_lora(int64_t rank, const LoraOptions& options) {
  auto* const layer = dynamic_cast<LoraLayer*>(this);
  if (!layer) {
    throw ConfigError(class_name() + " " + path(),
                      "the class can have an adapter, as Dense, EinsumDense and Embedding can",
                      in_quotes(class_name()),
                      is_model() ? "name its layers, with Model::enable_lora()"
                                 : "call enable_lora() of a layer inside");
  }
  layer->check_adapter(rank, options);
  layer->make_adapter(rank, options);
}

bool Layer::can_have_lora() const { return dynamic_cast<const LoraLayer*>(this) != nullptr; }

bool Layer::has_lora() const {
  const auto* const layer = dynamic_cast<const LoraLayer*>(this);
  return layer && layer->has_adapter();
}

void Layer::merge_lora() {
  if (has_lora()) dynamic_cast<LoraLayer&>(*this).merge_adapter();
  for (const auto& layer : sublayers_) layer->merge_lora();
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
  resolve_policy();
  if (is_quantized() && !can_be_quantized()) {
    throw ConfigError(
        class_name() + " " + path(), "the dtype policy of this class is a floating one",
        in_quotes(to_string(policy_)), "give it to Dense, EinsumDense and Embedding alone");
  }
  name_sublayers();
  {
    const ScopedValue<bool> building(building_, true);
    if (!is_model()) output_shapes(inputs);
    make_weights(inputs);
  }
  build_sublayers(inputs);
  built_for_ = inputs;
  // The batch size of a planned call is arbitrary.
  for (Shape& shape : built_for_) {
    if (is_abstract() && !shape.empty()) shape[0] = -1;
  }
  built_ = true;
  place_compiled();
}

std::vector<MetricHandle> Layer::trackers() const { return {}; }

DTensor Layer::call(const Inputs&, const CallContext&) {
  throw MissingCall(class_name() + " " + path(), "a layer defines call()",
                    "neither call() nor call_all()",
                    "override DTensor call(const Inputs&, const CallContext&)");
}

DTensor Layer::read(const Variable& weight, std::optional<at::ScalarType> dtype) const {
  return GatheredWeights::read(*this, weight, dtype);
}

std::vector<DTensor> Layer::outputs(const Inputs& inputs, const CallContext& context) {
  if (OpListener* const listener = tracer(); listener && !can_be_replayed()) {
    listener->user_code(str("layer ", class_name(), " (", path(), ")"));
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
  const std::optional<DefaultMeshScope> mesh = mesh_of_call(inputs);
  const RematCall again(remat_rule_ ? remat_rule_.get() : remat_.get(), *this, shapes);
  const ScopedValue<const CallContext*> in_call(thread_state().call_context, &context);
  const GatheredWeights gathered(*this);
  if (is_model()) {
    place_compiled();
    return call_placed(inputs, inputs, context);
  }
  const CommLabel label(path());
  try {
    if (is_operation()) return call_placed(inputs, inputs, context);
    // Throws if the inputs' shapes differ from those the layer was built for.
    const Shapes expected = shape_from_call_ ? Shapes() : output_shapes(shapes);
    Inputs cast = inputs;
    for (DTensor& input : cast) {
      const bool floating = at::isFloatingType(input.dtype());
      if (!floating || input.dtype() == policy_.compute) continue;
      const DTensor mask = input.mask();
      input = ops::cast(input, policy_.compute);
      if (mask.defined()) input = input.with_mask(mask);
    }
    std::vector<DTensor> results = call_placed(cast, inputs, context);
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

/// Runs call_all(), with inputs and outputs resharded by value rules. `uncast`: the inputs before
/// any cast.
std::vector<DTensor> Layer::call_placed(const Inputs& inputs, const Inputs& uncast,
                                        const CallContext& context) {
  if (!values_) return call_all(inputs, context);
  Inputs placed = inputs;
  values_->reshard_inputs(placed, uncast);
  std::vector<DTensor> results = call_all(placed, context);
  values_->reshard_outputs(results);
  return results;
}

void Layer::check_outputs(const Shapes& expected, const std::vector<DTensor>& outputs) const {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i < expected.size() && outputs[i].defined() && fits(expected[i], outputs[i].shape())) {
      continue;
    }
    const std::string rule = i < expected.size() ? to_string(expected[i]) : "no such output";
    throw ShapeError(class_name() + " " + path(),
                     "call() and output_shape() must agree on the output's shape",
                     str(rule, " from output_shape(), ",
                         outputs[i].defined() ? to_string(outputs[i].shape()) : "an empty DTensor",
                         " from call()"),
                     "make them equal, or leave output_shape() out");
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
      // A no-op returns its input, mask included.
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
    node->dtypes = layer->symbolic_dtypes(shapes, node->shapes.size());
  } catch (const Error&) {
    rethrow_at(layer->class_name() + " " + layer->path());
  }
  node->call = layer->symbolic_calls_++;
  layer->symbolic_call_ = node;
  std::vector<SymbolicTensor> list;
  for (size_t i = 0; i < node->shapes.size(); ++i) list.emplace_back(node, i);
  return list;
}

LayerHandle::LayerHandle(std::shared_ptr<Layer> layer) : layer_(std::move(layer)) {
  if (layer_) return;
  throw StateError("LayerHandle", "a handle refers to a layer", "a null pointer",
                   "create the layer, with make_layer() for a class of your own");
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

DTensor LayerHandle::operator()(const at::Tensor& input, const CallContext& context) const {
  const std::vector<Variable> weights = layer_->weights();
  const Mesh mesh = weights.empty() ? default_mesh() : weights[0].layout().mesh();
  return (*layer_)(pack(input, Layout::replicated(mesh, input.dim())), context);
}

SymbolicTensor LayerHandle::operator()(const std::vector<SymbolicTensor>& inputs) const {
  const std::vector<SymbolicTensor> all = outputs(inputs);
  if (all.size() == 1) return all[0];
  throw ShapeError(layer_->class_name() + " " + layer_->path(), "the call has one output",
                   str(all.size(), " outputs"), "use outputs()");
}

std::shared_ptr<const Node> Layer::symbolic_call() const {
  std::shared_ptr<const Node> node = symbolic_call_.lock();
  if (symbolic_calls_ == 1 && node) return node;
  throw StateError(str(class_name(), " ", path()),
                   "the layer must have been called exactly once in a graph",
                   node ? str(symbolic_calls_, " calls")
                        : (symbolic_calls_ == 0 ? "no call" : "a graph that no longer exists"),
                   "keep the tensors that its calls returned");
}

std::vector<SymbolicTensor> Layer::symbolic_inputs() const {
  const std::shared_ptr<const Node> node = symbolic_call();
  return {node->inputs.begin(),
          node->inputs.begin() + static_cast<std::ptrdiff_t>(node->arguments())};
}

std::vector<SymbolicTensor> Layer::symbolic_outputs() const {
  const std::shared_ptr<const Node> node = symbolic_call();
  std::vector<SymbolicTensor> all;
  for (size_t i = 0; i < node->shapes.size(); ++i) all.emplace_back(node, i);
  return all;
}

namespace {

SymbolicTensor single(const Layer& layer, const std::vector<SymbolicTensor>& all,
                      const char* what) {
  if (all.size() == 1) return all[0];
  throw ShapeError(str(layer.class_name(), " ", layer.path()), str("the graph has one ", what),
                   str(all.size()), str("use symbolic_", what, "s()"));
}

}  // namespace

SymbolicTensor LayerHandle::input() const {
  return single(*layer_, layer_->symbolic_inputs(), "input");
}

SymbolicTensor LayerHandle::output() const {
  return single(*layer_, layer_->symbolic_outputs(), "output");
}

void Layer::add_loss(const DTensor& loss) {
  const auto keep = [this](std::span<const DTensor> in) { losses_.push_back(in[0]); };
  traced(std::span(&loss, 1), keep, Changes::sums);
}

void Layer::load_assets(const LayerAssets& assets) {
  if (assets.empty()) return;
  throw ConfigError(str(class_name(), " ", path()), "this layer has no asset files",
                    "a file " + in_quotes(assets.begin()->first), "load an export of this model");
}

int64_t Layer::renamed_layers() { return renames; }

void Layer::set_path(const std::string& name, const std::string& path) {
  check_name(name);
  if (!name_.empty() && name != name_) ++renames;
  const size_t old = this->path().size() + 1;
  for (Variable& weight : weights_) weight.set_path(path + "/" + weight.path().substr(old));
  name_ = name;
  path_ = path;
  resolve_policy();
  for (const auto& layer : sublayers_) {
    if (!layer->name().empty()) layer->set_path(layer->name(), path + "/" + layer->name());
  }
}

Variable Layer::add_weight(const std::string& name, const Shape& shape,
                           const InitializerHandle& initializer, const WeightOptions& options) {
  Variable weight(VariableSpec{path() + "/" + name,
                               shape,
                               options.dtype.value_or(policy_.variable),
                               initializer,
                               {global_seed(), 0},
                               options.trainable,
                               options.regularizer,
                               options.constraint,
                               options.memory_order});
  weight.set_trainable(options.trainable && trainable_);
  weights_.push_back(weight);
  return weight;
}

void Layer::penalize(const RegularizerHandle& regularizer, const DTensor& y) {
  if (regularizer && y.size(0) > 0) add_loss((*regularizer)(y) / static_cast<double>(y.size(0)));
}

const Shape& Layer::single_input(const Shapes& inputs) const {
  if (inputs.size() == 1) return inputs[0];
  throw ShapeError(class_name() + " " + path(), "the layer takes one input",
                   str(inputs.size(), " inputs"), "join them first");
}

void Layer::set_weight_layout(const std::string& weight, const LayoutSpec& layout) {
  weight_layouts_[weight] = layout;
}

}  // namespace tessera
