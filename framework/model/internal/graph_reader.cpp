#include <tessera/framework/model/internal/graph_reader.hpp>

#include <algorithm>
#include <set>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/model/input.hpp>

namespace tessera::detail {
namespace {

/// Names of the arguments behind the first one, where Keras' layers take several.
std::vector<std::string> further_arguments(const std::string& layer) {
  if (layer == "MultiHeadAttention") {
    return {"value", "key", "query_mask", "value_mask", "key_mask", "attention_mask"};
  }
  if (is_recurrent(layer)) return {"initial_state", "mask"};
  if (layer == "GlobalAveragePooling1D" || layer == "Softmax") return {"mask"};
  return {};
}

/// Whether the call tells the layer to do this. Throws ConfigError for anything but a bool.
bool is_told(const Json& call, const std::string& option, const JsonPath& path) {
  if (!call.is_object() || !call.contains("kwargs")) return false;
  const Json& given = call["kwargs"];
  if (!given.is_object() || !given.contains(option) || given[option].is_null()) return false;
  return json_as<bool>(given[option], path.key("kwargs").key(option));
}

/// The layer as its calls say it, which all must say the same: options are the layer's here.
Json with_call_options(Json json, const JsonPath& path) {
  if (!json.is_object() || !json.contains("inbound_nodes") || !json.contains("config")) return json;
  const Json& calls = json["inbound_nodes"];
  // Others are refused where they are read.
  if (!calls.is_array() || !json["config"].is_object()) return json;
  for (const char* option : call_options) {
    for (size_t i = 0; i < calls.size(); ++i) {
      const JsonPath at = path.key("inbound_nodes").index(i);
      const bool told = is_told(calls[i], option, at);
      if (i > 0 && told != is_told(calls[0], option, at)) {
        throw ConfigError(at.text(), str("all calls of one layer have the same ", option),
                          str(json.value("name", Json()).dump(), " with ",
                              told ? "true" : "false", ", and otherwise before"),
                          "make the model with a layer for each");
      }
      if (told) json["config"][option] = true;
    }
  }
  return json;
}

/// A tensor or a list of them.
void add_inputs(std::vector<TensorName>& inputs, const Json& json, const JsonPath& path) {
  if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) add_inputs(inputs, json[i], path.index(i));
  } else {
    inputs.push_back(name_of_tensor(json, path));
  }
}

/// Throws ConfigError for an argument that would be left out.
void check_rest(const std::string& name, const Json& value, const JsonPath& path,
                const std::string& layer) {
  if (value.is_null()) return;
  const bool option = std::find(call_options.begin(), call_options.end(), name) !=
                      call_options.end();
  // A model's own `training` is what counts, as in Keras.
  if (!option && name != "training") {
    throw ConfigError(path.text(), "all arguments of a call are known here",
                      str(in_quotes(name), " of ", layer), "call it without");
  }
  if (!value.is_boolean()) json_fail(value, path, "null, true or false");
}

}  // namespace

void GraphReader::add_layer(const Json& json, const JsonPath& path, int depth) {
  if (is_operation(json)) {
    operations_.add(json, path);
    return;
  }
  const LayerHandle layer = any_layer_from_config(with_call_options(json, path), path, depth + 1);
  std::string name = layer->name();
  if (json.contains("name")) json_get(json["name"], path.key("name"), name);
  if (name.empty()) json_fail(json, path, "a layer with a name");
  if (!layers_.emplace(name, layer).second) {
    throw ConfigError(path.text(), "layers differ in name", "two layers named " + in_quotes(name),
                      "rename one of them");
  }
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

void GraphReader::add_call(const CallName& name, const Json& json, const JsonPath& path) {
  JsonObject call(json, path);
  const Json args = call.take<Json>("args");
  const Json kwargs = call.take_or<Json>("kwargs", Json::object());
  call.finish();
  if (!args.is_array() || args.empty()) json_fail(args, path.key("args"), "a list of arguments");
  if (!kwargs.is_object()) json_fail(kwargs, path.key("kwargs"), "an object");
  const Layer& layer = *layers_.at(name.first).layer();
  Call made{name, {}, {}, path};
  Arguments arguments;
  for (const auto& [key, value] : kwargs.items()) {
    arguments.emplace(key, std::pair(value, path.key("kwargs").key(key)));
  }
  const std::vector<std::string> further = further_arguments(layer.class_name());
  for (size_t i = 0; i < args.size(); ++i) {
    const JsonPath at = path.key("args").index(i);
    if (i == 0 || i > further.size()) {
      add_inputs(made.inputs, args[i], at);
    } else if (!arguments.emplace(further[i - 1], std::pair(args[i], at)).second) {
      json_fail(args[i], at, str("left out where ", further[i - 1], " is given by name"));
    }
  }
  add_named(made, layer, arguments);
  for (const auto& [key, argument] : arguments) {
    check_rest(key, argument.first, argument.second, layer.class_name());
  }
  calls_.push_back(std::move(made));
}

/// Takes the tensors that are given by name.
void GraphReader::add_named(Call& call, const Layer& layer, Arguments& arguments) {
  const auto take = [&](const std::string& key) {
    const auto found = arguments.extract(key);
    return found.empty() ? std::pair(Json(), call.path) : found.mapped();
  };
  const auto add_mask = [&](size_t input, const Json& json, const JsonPath& at) {
    if (input >= call.inputs.size()) json_fail(json, at, "null where there is no such input");
    call.masks.push_back({input, {}, at});
    if (!json.is_null()) call.masks.back().tensor = name_of_tensor(json, at);
  };
  const std::string kind = layer.class_name();
  if (kind == "MultiHeadAttention") {
    const auto needs_key = [&](const char* key) {
      return arguments.contains(key) && !arguments.at(key).first.is_null();
    };
    for (const char* key : {"value", "key", "attention_mask"}) {
      // The key is the value where it is not given.
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
  if (is_recurrent(kind)) {
    const auto [json, at] = take("initial_state");
    if (!json.is_null()) add_inputs(call.inputs, json, at);
  }
  const auto [mask, at] = take("mask");
  if (!mask.is_array() && !mask.is_null()) add_mask(0, mask, at);
  for (size_t i = 0; mask.is_array() && i < mask.size(); ++i) add_mask(i, mask[i], at.index(i));
}

/// In passes over the calls in their order, each as soon as what it reads is there.
void GraphReader::run() {
  const auto found = [this](const TensorName& name) { return find(name); };
  std::map<CallName, std::vector<size_t>> waiting;  // for the outputs of that call
  std::set<size_t> left, pass, next;
  for (size_t i = 0; i < calls_.size(); ++i) left.insert(i);
  pass = left;
  for (bool progress = true; progress && !left.empty(); pass = std::exchange(next, {})) {
    progress = operations_.run(found);
    while (!pass.empty()) {
      const size_t at = *pass.begin();
      pass.erase(pass.begin());
      const Call& call = calls_[at];
      const Tried tried = try_call(call);
      if (!tried.done) {
        if (tried.missing) {
          waiting[*tried.missing].push_back(at);
        } else {
          next.insert(at);  // for a mask that operations make
        }
        continue;
      }
      progress = true;
      left.erase(at);
      const auto freed = waiting.extract(call.name);
      if (freed.empty()) continue;
      for (const size_t other : freed.mapped()) (other > at ? pass : next).insert(other);
    }
  }
  if (!left.empty()) fail_at(calls_[*left.begin()]);
}

GraphReader::Tried GraphReader::try_call(const Call& call) {
  std::vector<SymbolicTensor> inputs;
  for (const TensorName& name : call.inputs) {
    const SymbolicTensor* tensor = find(name);
    if (tensor == nullptr) return {false, CallName(name.layer, name.call)};
    inputs.push_back(*tensor);
  }
  const auto& [layer, number] = call.name;
  for (const Mask& mask : call.masks) {
    if (!try_mask(layer, mask, inputs[mask.input])) return {false, std::nullopt};
  }
  // Calls of one layer are made in their order, so that they are counted as written.
  const CallName before(layer, number - 1);
  if (number > 0 && !tensors_.contains(before)) return {false, before};
  const std::vector<SymbolicTensor> outputs = layers_.at(layer).outputs(inputs);
  if (!outputs.empty()) masks_.add(*outputs[0].node());
  tensors_[call.name] = outputs;
  return {true, std::nullopt};
}

/// Puts a mask onto an input, if it is there. One that operations made must be the input's own.
bool GraphReader::try_mask(const std::string& layer, const Mask& mask,
                           SymbolicTensor& input) const {
  const MaskSources& own = masks_.sources(input);
  if (!mask.tensor) {
    if (own.empty()) return true;
    json_fail(Json(), mask.path, "a tensor, as the input has a mask of its own");
  }
  if (const SymbolicTensor* tensor = find(*mask.tensor)) {
    input = input.with_mask(*tensor);
    return true;
  }
  const MaskSources* made = operations_.sources(*mask.tensor);
  if (made == nullptr) return false;
  if (!made->empty() && *made == own) return true;
  throw ConfigError(mask.path.text(),
                    "a mask is a layer's output, or the one that the input's layers make",
                    str("for ", in_quotes(layer), " another one, by ",
                        operations_.described(mask.tensor->layer), " of keras.ops"),
                    "pass it as an Input");
}

void GraphReader::fail_at(const Call& call) const {
  std::string received = "tensors that nothing makes", fix = "correct \"keras_history\"";
  std::vector<TensorName> names = call.inputs;
  for (const Mask& mask : call.masks) {
    if (mask.tensor) names.push_back(*mask.tensor);
  }
  for (const TensorName& name : names) {
    const std::string operation = operations_.described(name.layer);
    if (operation.empty()) continue;
    received = str(operation, " of keras.ops, which is not read");
    fix = "make the model of layers";
  }
  throw ConfigError(call.path.text(), "a call's inputs are outputs of other layers' calls",
                    str("a call of ", in_quotes(call.name.first), " on ", received), fix);
}

std::vector<SymbolicTensor> GraphReader::ends(const Json& json, const JsonPath& path) const {
  if (!json.is_array()) json_fail(json, path, "a list of tensors");
  const bool single = !json.empty() && json[0].is_string();
  std::vector<SymbolicTensor> list;
  for (size_t i = 0; i < (single ? 1 : json.size()); ++i) {
    const JsonPath at = single ? path : path.index(i);
    const TensorName name = tensor_name(single ? json : json[i], at);
    const SymbolicTensor* tensor = find(name);
    if (tensor == nullptr) json_fail(single ? json : json[i], at, "a tensor of the model");
    list.push_back(*tensor);
  }
  return list;
}

const SymbolicTensor* GraphReader::find(const TensorName& name) const {
  const auto found = tensors_.find({name.layer, name.call});
  if (found == tensors_.end()) return nullptr;
  const bool fits = name.output >= 0 && name.output < int64_t(found->second.size());
  return fits ? &found->second[size_t(name.output)] : nullptr;
}

}  // namespace tessera::detail
