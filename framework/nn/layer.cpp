#include <tessera/framework/nn/layer.hpp>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <mutex>
#include <set>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/ops/elementwise.hpp>
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

void Layer::build(const Shapes& inputs) {
  if (built_) return;
  if (name_.empty()) name_ = snake_case(class_name());
  name_parts();
  if (!is_model()) output_shapes(inputs);
  make_weights(inputs);
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
  if (is_model()) return call_all(inputs, context);
  const CommLabel place(path());
  try {
    // Throws for inputs of another shape than it was built for.
    output_shapes(shapes);
    Inputs cast = inputs;
    for (DTensor& input : cast) {
      const bool floating = at::isFloatingType(input.dtype());
      if (!floating || input.dtype() == policy_.compute) continue;
      const DTensor mask = input.mask();
      input = ops::cast(input, policy_.compute);
      if (mask.defined()) input = input.with_mask(mask);
    }
    std::vector<DTensor> results = call_all(cast, context);
    pass_masks(cast, results);
    return results;
  } catch (const Error&) {
    rethrow_at(class_name() + " " + path());
  }
}

std::vector<DTensor> Layer::masks(const Inputs& inputs, size_t outputs) {
  return std::vector<DTensor>(outputs, inputs.empty() ? DTensor() : inputs[0].mask());
}

void Layer::pass_masks(const Inputs& inputs, std::vector<DTensor>& outputs) {
  const auto masked = [](const DTensor& value) { return value.mask().defined(); };
  if (!supports_masking() && std::any_of(inputs.begin(), inputs.end(), masked)) {
    warn_of_mask(*this, inputs[0].mesh());
  }
  if (!supports_masking() || std::all_of(outputs.begin(), outputs.end(), masked)) return;
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
}

void Layer::set_trainable(bool trainable) {
  trainable_ = trainable;
  for (Variable& weight : weights_) weight.set_trainable(trainable && weight.spec().trainable);
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
}

}  // namespace tessera
