#include <tessera/layers/recurrent/bidirectional.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/sequence_layer.hpp>
#include <tessera/layers/internal/wrapper.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(BidirectionalOptions& o, const Visit& visit) {
  visit("merge_mode", o.merge_mode);
}

namespace {

class BidirectionalLayer final
    : public LayerOf<BidirectionalLayer, BidirectionalOptions, WrapperLayer> {
 public:
  static constexpr const char* keras_name = "Bidirectional";
  BidirectionalLayer(const RecurrentHandle& layer, const BidirectionalOptions& options);
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override { return output_shapes(inputs)[0]; }
  Shapes output_shapes(const Shapes& inputs) const override;
  void reset_state();

 protected:
  void make_weights(const Shapes& inputs) override;
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs& inputs, size_t outputs) override;

 private:
  const SequenceLayer& direction(size_t i) const;
  DTensor merged(const DTensor& forward, const DTensor& backward) const;
};

/// Makes the recurrent layer that a configuration holds at `path`.
RecurrentHandle recurrent_from(const Json& json, const JsonPath& path) {
  const LayerHandle layer = layer_from_config(json, path);
  if (dynamic_cast<SequenceLayer*>(layer.layer().get())) return RecurrentHandle(layer.layer());
  throw ConfigError(path.text(), "a recurrent layer", layer->class_name(),
                    "wrap SimpleRNN, LSTM, GRU, ConvLSTM or RNN");
}

const RegisteredLayer registered_bidirectional("Bidirectional", [](JsonObject& config) {
  auto options = layer_options_from<BidirectionalOptions>(config);
  const Json forward = config.take<Json>("layer");
  if (const auto backward = config.take_optional<Json>("backward_layer")) {
    options.backward_layer = recurrent_from(*backward, config.path().key("backward_layer"));
  }
  return Bidirectional(recurrent_from(forward, config.path().key("layer")), options);
});

/// Copies a layer by its configuration, with `prefix` before its name; `reversed`: reading
/// backwards.
LayerHandle copied(const Layer& layer, const std::string& prefix, bool reversed) {
  Json json = layer_json(layer);
  Json& config = json["config"];
  std::string name = layer.name().empty() ? snake_case(layer.class_name()) : layer.name();
  if (name.starts_with(prefix)) name = name.substr(prefix.size());
  config["name"] = prefix + name;
  if (reversed) config["go_backwards"] = true;
  config["zero_output_for_mask"] = config.at("return_sequences");
  return layer_from_config(json, JsonPath("Bidirectional"));
}

/// Returns a direction's inputs: the sequence, then its half of the states.
template <class List>
List half_of(const List& inputs, size_t direction) {
  List list = {inputs[0]};
  const size_t half = (inputs.size() - 1) / 2;
  const auto begin = inputs.begin() + 1 + static_cast<int64_t>(direction * half);
  list.insert(list.end(), begin, begin + static_cast<int64_t>(half));
  return list;
}

DTensor flipped(const DTensor& sequence) {
  std::vector<DTensor> steps = ops::unstack(sequence, 1);
  std::reverse(steps.begin(), steps.end());
  return ops::stack(steps, 1);
}

BidirectionalLayer::BidirectionalLayer(const RecurrentHandle& layer,
                                       const BidirectionalOptions& options)
    : LayerOf(options) {
  add_inner("forward_layer", copied(*layer.layer(), "forward_", false));
  const bool has_backward = options.backward_layer.has_value();
  add_inner("backward_layer", has_backward ? copied(*options.backward_layer->layer(), "", false)
                                           : copied(*layer.layer(), "backward_", true));
  const SequenceOptions& a = direction(0).sequence();
  const SequenceOptions& b = direction(1).sequence();
  if (a.go_backwards == b.go_backwards) {
    throw ConfigError(where(), "exactly one of the two layers has go_backwards",
                      str("go_backwards ", a.go_backwards, " in both"), "change it in one");
  }
  if (a.stateful != b.stateful || a.return_sequences != b.return_sequences ||
      a.return_state != b.return_state) {
    throw ConfigError(where(), "both layers have equal stateful, return_sequences and return_state",
                      "layers that differ", "make them equal");
  }
}

const SequenceLayer& BidirectionalLayer::direction(size_t i) const {
  return static_cast<const SequenceLayer&>(*inner(i));
}

void BidirectionalLayer::reset_state() {
  for (const auto& layer : sublayers()) static_cast<SequenceLayer&>(*layer).reset_state();
}

Json BidirectionalLayer::config() const {
  Json json = LayerOf::config();
  if (arguments_.merge_mode == MergeMode::none) json["merge_mode"] = nullptr;
  json["layer"] = layer_json(*inner(0));
  json["backward_layer"] = layer_json(*inner(1));
  return json;
}

Shapes BidirectionalLayer::output_shapes(const Shapes& inputs) const {
  if (inputs.size() % 2 == 0) {
    throw ShapeError(where(), "inputs are a sequence, then the initial states of both directions",
                     str(inputs.size(), " inputs"), "pass every state, or none");
  }
  Shapes shapes = inner(0)->output_shapes(half_of(inputs, 0));
  const Shapes back = inner(1)->output_shapes(half_of(inputs, 1));
  shapes.insert(shapes.end(), back.begin() + 1, back.end());
  if (arguments_.merge_mode == MergeMode::none) {
    shapes.insert(shapes.begin() + 1, back[0]);
  } else if (arguments_.merge_mode == MergeMode::concat) {
    shapes[0].back() += back[0].back();
  } else if (shapes[0] != back[0]) {
    throw ShapeError(where(), "both directions have equal units",
                     to_string(shapes[0]) + " and " + to_string(back[0]), "use merge_mode concat");
  }
  return shapes;
}

void BidirectionalLayer::make_weights(const Shapes& inputs) {
  for (const size_t i : {0, 1}) inner(i)->build(half_of(inputs, i));
}

DTensor BidirectionalLayer::merged(const DTensor& forward, const DTensor& backward) const {
  switch (arguments_.merge_mode) {
    case MergeMode::sum:
      return forward + backward;
    case MergeMode::mul:
      return forward * backward;
    case MergeMode::ave:
      return (forward + backward) / 2;
    default:
      return ops::concat({forward, backward}, -1);
  }
}

std::vector<DTensor> BidirectionalLayer::call_all(const Inputs& inputs,
                                                  const CallContext& context) {
  std::vector<DTensor> outputs = inner(0)->outputs(half_of(inputs, 0), context);
  std::vector<DTensor> back = inner(1)->outputs(half_of(inputs, 1), context);
  if (direction(0).sequence().return_sequences) back[0] = flipped(back[0]);
  outputs.insert(outputs.end(), back.begin() + 1, back.end());
  const at::ScalarType compute = dtype_policy().compute;
  const DTensor forward = ops::cast(outputs[0], compute).with_mask({});
  const DTensor backward = ops::cast(back[0], compute);
  if (arguments_.merge_mode != MergeMode::none) {
    outputs[0] = merged(forward, backward);
    return outputs;
  }
  outputs[0] = forward;
  outputs.insert(outputs.begin() + 1, backward);
  return outputs;
}

std::vector<DTensor> BidirectionalLayer::masks(const Inputs& inputs, size_t outputs) {
  std::vector<DTensor> list(outputs);
  if (!direction(0).sequence().return_sequences) return list;
  list[0] = inputs[0].mask();
  if (arguments_.merge_mode == MergeMode::none) list[1] = list[0];
  return list;
}

}  // namespace

Bidirectional::Bidirectional(const RecurrentHandle& layer, const BidirectionalOptions& options)
    : LayerHandle(std::make_shared<BidirectionalLayer>(layer, options)) {}

void Bidirectional::reset_state() const {
  static_cast<BidirectionalLayer&>(*layer()).reset_state();
}

}  // namespace tessera
