#include <tessera/framework/graph/internal/graph_reader.hpp>

#include <algorithm>
#include <set>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/graph/input.hpp>
#include <tessera/framework/graph/internal/call_arguments.hpp>
#include <tessera/framework/nn/internal/reversed_call.hpp>
#include <tessera/framework/nn/layer_registry.hpp>

namespace tessera::detail {
namespace {

/// Whether the call sets the option. Throws ConfigError for anything but a bool.
bool sets_option(const Json& call, const std::string& option, const JsonPath& path) {
  if (!call.is_object() || !call.contains("kwargs")) return false;
  const Json& kwargs = call["kwargs"];
  if (!kwargs.is_object() || !kwargs.contains(option) || kwargs[option].is_null()) return false;
  return json_as<bool>(kwargs[option], path.key("kwargs").key(option));
}

/// Moves call options into the layer's config, since here they are options of the layer. Throws
/// ConfigError if the layer's calls differ in them.
Json with_call_options(Json json, const JsonPath& path) {
  if (!json.is_object() || !json.contains("inbound_nodes") || !json.contains("config")) return json;
  const Json& calls = json["inbound_nodes"];
  // Invalid JSON is rejected where it is read.
  if (!calls.is_array() || !json["config"].is_object()) return json;
  for (const char* option : call_options) {
    for (size_t i = 0; i < calls.size(); ++i) {
      const JsonPath at = path.key("inbound_nodes").index(i);
      const bool is_set = sets_option(calls[i], option, at);
      if (i > 0 && is_set != sets_option(calls[0], option, at)) {
        throw ConfigError(at.text(), str("all calls of one layer must have the same ", option),
                          str(json.value("name", Json()).dump(), " with ",
                              is_set ? "true" : "false", " in this call, but not in the first"),
                          "make the model with one layer per value");
      }
      if (is_set) json["config"][option] = true;
    }
  }
  return json;
}

/// Throws ConfigError for an argument that would be ignored.
void check_rest(const std::string& name, const Json& value, const JsonPath& path,
                const std::string& layer) {
  if (value.is_null()) return;
  const bool option =
      std::find(call_options.begin(), call_options.end(), name) != call_options.end();
  // The model's own `training` takes precedence, as in Keras.
  if (!option && name != "training") {
    throw ConfigError(path.text(), "a call may only have supported arguments",
                      str(in_quotes(name), " of ", layer), "call the layer without it");
  }
  const bool number = path.is_from_python() && (value == 0 || value == 1);
  if (!value.is_boolean() && !number) json_fail(value, path, "null, true or false");
}

}  // namespace

void GraphReader::add_name(const std::string& name, const JsonPath& path) {
  if (names_.insert(name).second) return;
  throw ConfigError(path.text(), "layer names must be unique",
                    "two layers named " + in_quotes(name), "rename one of them");
}

void GraphReader::add_layer(const Json& json, const JsonPath& path, int depth) {
  if (is_operation(json)) {
    keras_masks_.add(json, path);
    add_operation(json, path);
    return;
  }
  const LayerHandle layer = model_factory()(with_call_options(json, path), path, depth + 1);
  std::string name = layer->name();
  if (json.contains("name")) json_get(json["name"], path.key("name"), name);
  if (name.empty()) json_fail(json, path, "a layer with a name");
  add_name(name, path);
  layers_.emplace(name, layer);
  if (dynamic_cast<const InputLayer*>(layer.layer().get()) != nullptr) {
    tensors_[{name, 0}] = layer.outputs(std::vector<SymbolicTensor>{});
    masks_.add(*tensors_[{name, 0}][0].node());
    return;
  }
  const Json calls = json.contains("inbound_nodes") ? json["inbound_nodes"] : Json::array();
  if (!calls.is_array()) json_fail(calls, path.key("inbound_nodes"), "a list of calls");
  for (size_t i = 0; i < calls.size(); ++i) {
    add_call({name, int64_t(i)}, calls[i], path.key("inbound_nodes").index(i));
  }
}

void GraphReader::add_operation(const Json& json, const JsonPath& path) {
  JsonObject entry(json, path);
  const auto name = entry.take<std::string>("name");
  const Json calls = entry.take_or<Json>("inbound_nodes", Json::array());
  add_name(name, path);
  operations_.emplace(name, Operation{json, path});
  for (size_t i = 0; calls.is_array() && i < calls.size(); ++i) {
    const JsonPath at = path.key("inbound_nodes").index(i);
    JsonObject call(calls[i], at);
    const Json args = call.take<Json>("args");
    const Json kwargs = call.take_or<Json>("kwargs", Json::object());
    call.finish();
    if (!args.is_array()) json_fail(args, at.key("args"), "a list of arguments");
    if (!kwargs.is_object()) json_fail(kwargs, at.key("kwargs"), "an object");
    Call node_call{{name, int64_t(i)}, {}, {}, at};
    node_call.arguments.args = with_placeholders(node_call.inputs, args, at.key("args"));
    for (const auto& [key, value] : kwargs.items()) {
      node_call.arguments.kwargs[key] =
          with_placeholders(node_call.inputs, value, at.key("kwargs").key(key));
    }
    operation_calls_.emplace(node_call.name, std::move(node_call));
  }
}

void GraphReader::add_call(const CallName& name, const Json& json, const JsonPath& path) {
  JsonObject call(json, path);
  const Json args = call.take<Json>("args");
  const Json kwargs = call.take_or<Json>("kwargs", Json::object());
  call.finish();
  if (!args.is_array()) json_fail(args, path.key("args"), "a list of arguments");
  if (!kwargs.is_object()) json_fail(kwargs, path.key("kwargs"), "an object");
  const Layer& layer = *layers_.at(name.first).layer();
  Call node_call{name, {}, {}, path};
  Arguments arguments;
  for (const auto& [key, value] : kwargs.items()) {
    arguments.emplace(key, std::pair(value, path.key("kwargs").key(key)));
  }
  const std::vector<std::string> further = further_arguments(layer.class_name());
  if (args.empty()) {
    const auto first = arguments.extract(first_argument(layer.class_name()));
    if (first.empty()) {
      json_fail(kwargs, path.key("kwargs"),
                str("an object with ", in_quotes(first_argument(layer.class_name())),
                    ", as \"args\" is empty"));
    }
    add_inputs(node_call.inputs, first.mapped().first, first.mapped().second);
  }
  for (size_t i = 0; i < args.size(); ++i) {
    const JsonPath at = path.key("args").index(i);
    if (i == 0 || i > further.size()) {
      add_inputs(node_call.inputs, args[i], at);
    } else if (!arguments.emplace(further[i - 1], std::pair(args[i], at)).second) {
      json_fail(args[i], at, str("absent, since ", further[i - 1], " is given by name"));
    }
  }
  add_named(node_call, layer, arguments);
  if (dynamic_cast<const Reversible*>(&layer) != nullptr) {
    const auto reverse = arguments.extract("reverse");
    if (!reverse.empty() && !reverse.mapped().first.is_null()) {
      node_call.reversed = json_as<bool>(reverse.mapped().first, reverse.mapped().second);
    }
  }
  for (const auto& [key, argument] : arguments) {
    check_rest(key, argument.first, argument.second, layer.class_name());
  }
  calls_.push_back(std::move(node_call));
}

/// Takes the tensors given by name from `arguments` into the call.
void GraphReader::add_named(Call& call, const Layer& layer, Arguments& arguments) {
  const auto take = [&](const std::string& key) {
    const auto node = arguments.extract(key);
    return node.empty() ? std::pair(Json(), call.path) : node.mapped();
  };
  const auto add_mask = [&](size_t input, const Json& json, const JsonPath& at) {
    if (input >= call.inputs.size()) json_fail(json, at, "null, since there is no such input");
    call.masks.push_back({input, {}, at});
    if (!json.is_null()) call.masks.back().tensor = name_of_tensor(json, at);
  };
  const std::string kind = layer.class_name();
  if (takes_query(kind)) {
    const auto needs_key = [&](const char* key) {
      return arguments.contains(key) && !arguments.at(key).first.is_null();
    };
    for (const char* key : {"value", "key", "attention_mask"}) {
      // The key defaults to the value.
      const bool absent = call.inputs.size() == 2;
      if (absent && key == std::string("attention_mask") &&
          (needs_key("attention_mask") || needs_key("key_mask"))) {
        call.inputs.push_back(call.inputs[1]);
      }
      const auto [json, at] = take(key);
      if (!json.is_null()) add_inputs(call.inputs, json, at);
    }
    take("query_mask");
    for (size_t i = 0; i < attention_masks.size(); ++i) {
      const auto [json, at] = take(attention_masks[i]);
      if (!json.is_null()) add_mask(i, json, at);
    }
    return;
  }
  if (is_recurrent(kind) || kind == "CategoryEncoding") {
    const auto [json, at] = take(further_arguments(kind)[0]);
    if (!json.is_null()) add_inputs(call.inputs, json, at);
  }
  const auto [masks, at] = take("mask");
  const Json mask = in_key_order(masks);
  if (!mask.is_array() && !mask.is_null()) add_mask(0, mask, at);
  for (size_t i = 0; mask.is_array() && i < mask.size(); ++i) add_mask(i, mask[i], at.index(i));
}

void GraphReader::queue_producer(const TensorName& name) {
  const auto call = operation_calls_.extract(CallName(name.layer, name.call));
  if (!call.empty()) calls_.push_back(std::move(call.mapped()));
}

bool GraphReader::queue_mask_producers() {
  const size_t before = calls_.size();
  for (const size_t at : remaining_) {
    for (const Mask& mask : calls_[at].masks) {
      if (mask.tensor) queue_producer(*mask.tensor);
    }
  }
  return calls_.size() > before;
}

void GraphReader::schedule() {
  // queue_producer() appends calls to the queue, so the loop reaches them too.
  for (; scheduled_ < calls_.size(); ++scheduled_) {
    for (const TensorName& input : calls_[scheduled_].inputs) queue_producer(input);
    remaining_.insert(scheduled_);
    next_.insert(scheduled_);
  }
}

/// Makes passes over the calls in order, making each as soon as its inputs exist.
void GraphReader::run(const EndNames& outputs) {
  const auto find_tensor = [this](const TensorName& name) { return find(name); };
  std::map<CallName, std::vector<size_t>> waiting;  // calls that need the outputs of the key's call
  for (const TensorName& output : outputs.names) queue_producer(output);
  schedule();
  for (bool progress = true; progress && !remaining_.empty();) {
    std::set<size_t> pass = std::exchange(next_, {});
    progress = keras_masks_.run(find_tensor);
    while (!pass.empty()) {
      const size_t at = *pass.begin();
      pass.erase(pass.begin());
      const Call& call = calls_[at];
      const CallResult result = try_call(call);
      if (!result.done) {
        if (result.missing) {
          waiting[*result.missing].push_back(at);
        } else {
          next_.insert(at);  // waits for a mask that operations compute
        }
        continue;
      }
      progress = true;
      remaining_.erase(at);
      const auto freed = waiting.extract(call.name);
      if (freed.empty()) continue;
      for (const size_t other : freed.mapped()) (other > at ? pass : next_).insert(other);
    }
    const bool more = scheduled_ < calls_.size() || (!progress && queue_mask_producers());
    progress = progress || more;
    schedule();
  }
  if (!remaining_.empty()) fail_at(calls_[*remaining_.begin()]);
}

GraphReader::CallResult GraphReader::try_call(const Call& call) {
  std::vector<SymbolicTensor> inputs;
  for (const TensorName& name : call.inputs) {
    const SymbolicTensor* tensor = find(name);
    if (tensor == nullptr) return {false, CallName(name.layer, name.call)};
    inputs.push_back(*tensor);
  }
  const auto& [layer, number] = call.name;
  for (const Mask& mask : call.masks) {
    if (!try_mask(mask, inputs[mask.input])) return {false, std::nullopt};
  }
  // Calls of one layer are made in order, so that they are numbered as written.
  const CallName before(layer, number - 1);
  const bool operation = operations_.contains(layer);
  if (number > 0 && !operation && !tensors_.contains(before)) return {false, before};
  const std::vector<SymbolicTensor> outputs =
      operation ? call_operation(call, inputs) : layer_of(call).outputs(inputs);
  if (!outputs.empty()) masks_.add(*outputs[0].node());
  tensors_[call.name] = outputs;
  return {true, std::nullopt};
}

/// Returns the layer of a call, or the one that reverses it.
const LayerHandle& GraphReader::layer_of(const Call& call) {
  const LayerHandle& layer = layers_.at(call.name.first);
  if (!call.reversed) return layer;
  const auto found = reversed_.find(call.name.first);
  if (found != reversed_.end()) return found->second;
  auto& reversible = dynamic_cast<Reversible&>(*layer.layer());
  const LayerHandle reversed(reversible.reversed_call(layer.layer()));
  return reversed_.emplace(call.name.first, reversed).first->second;
}

/// Sets an input's mask, unless the input's layers propagate that mask anyway. Returns false if the
/// mask does not exist yet.
bool GraphReader::try_mask(const Mask& mask, SymbolicTensor& input) {
  const MaskSources& own = masks_.sources(input);
  if (!mask.tensor) {
    if (own.empty()) return true;
    json_fail(Json(), mask.path, "a tensor, since the input has its own mask");
  }
  const MaskSources* computed = keras_masks_.sources(*mask.tensor);
  if (computed != nullptr && !computed->empty() && *computed == own) return true;
  if (const SymbolicTensor* tensor = find(*mask.tensor)) {
    input = input.with_mask(*tensor);
    return true;
  }
  if (computed != nullptr) queue_producer(*mask.tensor);
  return false;
}

std::vector<SymbolicTensor> GraphReader::call_operation(const Call& call,
                                                        const std::vector<SymbolicTensor>& inputs) {
  make_operation(call, inputs);
  try {
    return layers_.at(call.name.first).outputs(inputs);
  } catch (const Error&) {
    rethrow_at(call.path.text());
  }
}

/// Makes the operation of a call; its later calls may differ in tensors only.
void GraphReader::make_operation(const Call& call, const std::vector<SymbolicTensor>& inputs) {
  const auto& [json, path] = operations_.at(call.name.first);
  const auto kind = json.at("class_name").get<std::string>();
  const auto known = layers_.find(call.name.first);
  if (known != layers_.end()) {
    const auto& existing = static_cast<const OperationLayer&>(*known->second.layer());
    if (existing.arguments() == call.arguments) return;
    throw ConfigError(call.path.text(),
                      "all calls of one operation must have the same arguments, tensors aside",
                      str("other arguments of ", in_quotes(call.name.first), ", ", kind),
                      "make the model with one operation per call");
  }
  const GraphOperation* const operation = find_operation(kind);
  if (operation == nullptr) {
    throw ConfigError(path.text(), "the operation must be one that Tessera has",
                      str(in_quotes(kind), " of ", json.at("module").get<std::string>(), ", named ",
                          in_quotes(call.name.first)),
                      "make the model with other operations, or with your own layer");
  }
  std::vector<at::ScalarType> dtypes;
  for (const SymbolicTensor& input : inputs) dtypes.push_back(input.dtype());
  Json config = json.contains("config") ? json["config"] : Json::object();
  if (config.is_object()) config["name"] = call.name.first;
  layers_.emplace(call.name.first,
                  std::make_shared<OperationLayer>(*operation, config, call.arguments,
                                                   std::move(dtypes), path));
}

void GraphReader::fail_at(const Call& call) const {
  throw ConfigError(
      call.path.text(), "a call's inputs must be outputs of other calls",
      str("a call of ", in_quotes(call.name.first), " on tensors that no call outputs"),
      "correct \"keras_history\"");
}

SymbolicTensors GraphReader::ends(const EndNames& ends) const {
  SymbolicTensors result;
  result.keys = ends.keys;
  for (size_t i = 0; i < ends.names.size(); ++i) {
    TensorName name = ends.names[i];
    const auto layer = layers_.find(name.layer);
    const bool graph = layer != layers_.end() && is_functional(*layer->second.layer());
    // Only here does Keras count the calls of a Functional model from 1; older Tessera files count
    // from 0.
    const auto from_0 = [&](const TensorName& other) {
      return other.layer == name.layer && other.call == 0;
    };
    if (graph && std::none_of(ends.names.begin(), ends.names.end(), from_0)) --name.call;
    const SymbolicTensor* tensor = find(name);
    if (tensor == nullptr) {
      json_fail({ends.names[i].layer, ends.names[i].call, ends.names[i].output}, ends.paths[i],
                "a tensor of the model");
    }
    result.tensors.push_back(*tensor);
  }
  return result;
}

const SymbolicTensor* GraphReader::find(const TensorName& name) const {
  const auto found = tensors_.find({name.layer, name.call});
  if (found == tensors_.end()) return nullptr;
  const bool fits = name.output >= 0 && name.output < int64_t(found->second.size());
  return fits ? &found->second[size_t(name.output)] : nullptr;
}

}  // namespace tessera::detail
