#include <tessera/framework/nn/layer.hpp>

#include <atomic>
#include <functional>
#include <set>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/own_class.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/tensor/placement.hpp>
#include <tessera/framework/tensor/planning.hpp>
#include <tessera/framework/tensor/tracer.hpp>

namespace tessera {
namespace {

std::atomic<int64_t> next_serial = 0;

int64_t& seed() {
  static int64_t value = 0;
  return value;
}

void check_name(const std::string& name) {
  if (name.find('/') == std::string::npos) return;
  throw ConfigError("layer " + name, "a layer's name holds no \"/\"", "\"" + name + "\"",
                    "nest models to get longer paths");
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

int64_t global_seed() { return seed(); }
void set_random_seed(int64_t value) { seed() = value; }

/// Of all steps.
Seed RandomStream::stream(const std::string& path) {
  const int64_t call = calls_[path]++;
  const Seed stream = fold_in({seed_, 0}, stable_hash(path));
  return fold_in(stream, static_cast<uint64_t>(call));
}

Seed RandomStream::next(const std::string& path) {
  stop_tracing("a layer took a seed with next() instead of next_input()");
  return fold_in(stream(path), static_cast<uint64_t>(step_));
}

DTensor RandomStream::next_input(const std::string& path, const Mesh& mesh,
                                 std::optional<int64_t> fold) {
  const auto host = [of_all = stream(path), fold](int64_t step) {
    Seed seed = fold_in(of_all, static_cast<uint64_t>(step));
    if (fold) seed = fold_in(seed, static_cast<uint64_t>(*fold));
    return ops::seed_tensor(seed);
  };
  const TracerScope unheard(nullptr);
  const DTensor made = host_input(host(step_), mesh);
  if (Tracer* const hears = unheard.former()) {
    if (seed_ != global_seed()) hears->stop("numbers were drawn for another seed");
    hears->input(made, step_, host);
  }
  return made;
}

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
    if (planning() && !shape.empty()) shape[0] = -1;
  }
  built_ = true;
}

DTensor Layer::call(const Inputs&, const CallContext&) {
  throw ConfigError(class_name() + " " + path(), "a layer defines call()", "neither call() nor "
                    "call_all()", "override DTensor call(const Inputs&, const CallContext&)");
}

std::vector<DTensor> Layer::outputs(const Inputs& inputs, const CallContext& context) {
  if (Tracer* const hears = tracer(); hears && !is_own_class(*this)) {
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
  const CommPlace place(path());
  try {
    // Throws for inputs of another shape than it was built for.
    output_shapes(shapes);
    Inputs cast = inputs;
    for (DTensor& input : cast) {
      const bool floating = at::isFloatingType(input.dtype());
      if (floating && input.dtype() != policy_.compute) input = ops::cast(input, policy_.compute);
    }
    return call_all(cast, context);
  } catch (const Error&) {
    rethrow_at(class_name() + " " + path());
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
    const RegularizerRef& regularizer = weight.spec().regularizer;
    if (!regularizer) continue;
    const auto& use = weight.placement().use;
    // Added to a loss on the mesh of the batch.
    const bool elsewhere = use && !(use->mesh() == weight.layout().mesh());
    if (Tracer* const hears = tracer(); hears && !is_own_class(*regularizer)) {
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
                           const InitializerRef& initializer, const WeightOptions& options) {
  Variable weight(VariableSpec{path() + "/" + name, shape,
                               options.dtype.value_or(policy_.variable), initializer,
                               {global_seed(), 0}, options.trainable, options.regularizer,
                               options.constraint});
  weight.set_trainable(options.trainable && trainable_);
  weights_.push_back(weight);
  return weight;
}

const Shape& Layer::only(const Shapes& inputs) const {
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
      if (layouts.storage().defined()) {
        placement.use = std::exchange(
            placement.layout, Layout::replicated(layouts.storage(), placement.layout.rank()));
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
