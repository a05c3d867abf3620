#include <functional>
#include <map>

#include <tessera/framework/drawing/styled_table.hpp>
#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/keras_graphs.hpp"

namespace operations_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

using T = SymbolicTensor;
using List = std::vector<SymbolicTensor>;
using Make = std::function<List(const List&)>;

const Json& cases(const std::string& part) { return golden_part("keras_operations.json", part); }

List pair_of(const std::pair<T, T>& both) { return {both.first, both.second}; }

/// The models that make_keras_operations.py makes under these names.
const std::map<std::string, Make> makers = {
    {"add", [](const List& x) { return List{x[0] + x[1]}; }},
    {"add_number", [](const List& x) { return List{x[0] + 2}; }},
    {"number_add", [](const List& x) { return List{2.5 + x[0]}; }},
    {"subtract", [](const List& x) { return List{x[0] - x[1]}; }},
    {"number_subtract", [](const List& x) { return List{1 - x[0]}; }},
    {"multiply", [](const List& x) { return List{x[0] * x[1]}; }},
    {"multiply_number", [](const List& x) { return List{x[0] * 0.5}; }},
    {"divide", [](const List& x) { return List{x[0] / x[1]}; }},
    {"divide_number", [](const List& x) { return List{x[0] / 4}; }},
    {"number_divide", [](const List& x) { return List{1 / x[0]}; }},
    {"negative", [](const List& x) { return List{-x[0]}; }},
    {"whole_add", [](const List& x) { return List{x[0] + 1}; }},
    {"whole_fraction", [](const List& x) { return List{x[0] + 1.5}; }},
    {"whole_divide", [](const List& x) { return List{x[0] / 2}; }},
    {"truth_multiply", [](const List& x) { return List{x[0] * 2}; }},
    {"whole_and_floating", [](const List& x) { return List{x[0][{":", 0}] * x[1]}; }},
    {"chain",
     [](const List& x) {
       const T sum = x[0] + x[1];
       const T product = sum * (x[0] - x[1]);
       return List{product + 1 + x[0]};
     }},
    {"item_place", [](const List& x) { return List{x[0][{":", 0}]}; }},
    {"item_slice", [](const List& x) { return List{x[0][{":", ":", "1:3"}]}; }},
    {"item_last", [](const List& x) { return List{x[0][{"...", -1}]}; }},
    {"item_new_axis", [](const List& x) { return List{x[0][{":", "None", "::2"}]}; }},
    {"item_back", [](const List& x) { return List{x[0][{":", "::-1", "-2:"}]}; }},
    {"item_row", [](const List& x) { return List{x[0][{0}]}; }},
    {"slice", [](const List& x) { return List{ops::slice(x[0], 2, 2, 3)}; }},
    {"sum", [](const List& x) { return List{ops::sum(x[0], {2})}; }},
    {"sum_all", [](const List& x) { return List{ops::sum(x[0], {1, 2}, true)}; }},
    {"mean", [](const List& x) { return List{ops::mean(x[0], {2})}; }},
    {"mean_all", [](const List& x) { return List{ops::mean(x[0], {1, 2}, true)}; }},
    {"max", [](const List& x) { return List{ops::max(x[0], {2})}; }},
    {"max_all", [](const List& x) { return List{ops::max(x[0], {1, 2}, true)}; }},
    {"min", [](const List& x) { return List{ops::min(x[0], {2})}; }},
    {"min_all", [](const List& x) { return List{ops::min(x[0], {1, 2}, true)}; }},
    {"prod", [](const List& x) { return List{ops::prod(x[0], {2})}; }},
    {"prod_all", [](const List& x) { return List{ops::prod(x[0], {1, 2}, true)}; }},
    {"logsumexp", [](const List& x) { return List{ops::logsumexp(x[0], {2})}; }},
    {"logsumexp_all", [](const List& x) { return List{ops::logsumexp(x[0], {1, 2}, true)}; }},
    {"var", [](const List& x) { return List{ops::variance(x[0], {2})}; }},
    {"var_all", [](const List& x) { return List{ops::variance(x[0], {1, 2}, true)}; }},
    {"sum_whole", [](const List& x) { return List{ops::sum(x[0], {1})}; }},
    {"mean_whole", [](const List& x) { return List{ops::mean(x[0], {1})}; }},
    {"mean_of_everything", [](const List& x) { return List{ops::mean(x[0])}; }},
    {"any", [](const List& x) { return List{ops::any(x[0], {1})}; }},
    {"all", [](const List& x) { return List{ops::all(x[0], {1})}; }},
    {"argmax", [](const List& x) { return List{ops::argmax(x[0])}; }},
    {"argmin", [](const List& x) { return List{ops::argmin(x[0], 1)}; }},
    {"abs", [](const List& x) { return List{ops::abs(x[0])}; }},
    {"sign", [](const List& x) { return List{ops::sign(x[0])}; }},
    {"exp", [](const List& x) { return List{ops::exp(x[0])}; }},
    {"exp_whole", [](const List& x) { return List{ops::exp(x[0])}; }},
    {"expm1", [](const List& x) { return List{ops::expm1(x[0])}; }},
    {"log", [](const List& x) { return List{ops::log(x[0])}; }},
    {"log1p", [](const List& x) { return List{ops::log1p(x[0])}; }},
    {"sqrt", [](const List& x) { return List{ops::sqrt(x[0])}; }},
    {"rsqrt", [](const List& x) { return List{ops::rsqrt(x[0])}; }},
    {"square", [](const List& x) { return List{ops::square(x[0])}; }},
    {"reciprocal", [](const List& x) { return List{ops::reciprocal(x[0])}; }},
    {"sin", [](const List& x) { return List{ops::sin(x[0])}; }},
    {"cos", [](const List& x) { return List{ops::cos(x[0])}; }},
    {"tanh", [](const List& x) { return List{ops::tanh(x[0])}; }},
    {"erf", [](const List& x) { return List{ops::erf(x[0])}; }},
    {"sigmoid", [](const List& x) { return List{ops::sigmoid(x[0])}; }},
    {"relu", [](const List& x) { return List{ops::relu(x[0])}; }},
    {"softplus", [](const List& x) { return List{ops::softplus(x[0])}; }},
    {"floor", [](const List& x) { return List{ops::floor(x[0])}; }},
    {"ceil", [](const List& x) { return List{ops::ceil(x[0])}; }},
    {"round", [](const List& x) { return List{ops::round(x[0])}; }},
    {"isfinite", [](const List& x) { return List{ops::is_finite(x[0])}; }},
    {"relu6", [](const List& x) { return List{ops::relu6(x[0])}; }},
    {"hard_sigmoid", [](const List& x) { return List{ops::hard_sigmoid(x[0])}; }},
    {"hard_silu", [](const List& x) { return List{ops::hard_silu(x[0])}; }},
    {"log_sigmoid", [](const List& x) { return List{ops::log_sigmoid(x[0])}; }},
    {"selu", [](const List& x) { return List{ops::selu(x[0])}; }},
    {"silu", [](const List& x) { return List{ops::silu(x[0])}; }},
    {"softsign", [](const List& x) { return List{ops::softsign(x[0])}; }},
    {"sparse_plus", [](const List& x) { return List{ops::sparse_plus(x[0])}; }},
    {"sparse_sigmoid", [](const List& x) { return List{ops::sparse_sigmoid(x[0])}; }},
    {"tanh_shrink", [](const List& x) { return List{ops::tanh_shrink(x[0])}; }},
    {"stop_gradient", [](const List& x) { return List{ops::stop_gradient(x[0])}; }},
    {"elu", [](const List& x) { return List{ops::elu(x[0])}; }},
    {"leaky_relu", [](const List& x) { return List{ops::leaky_relu(x[0])}; }},
    {"hard_shrink", [](const List& x) { return List{ops::hard_shrink(x[0])}; }},
    {"soft_shrink", [](const List& x) { return List{ops::soft_shrink(x[0])}; }},
    {"squareplus", [](const List& x) { return List{ops::squareplus(x[0])}; }},
    {"softmax", [](const List& x) { return List{ops::softmax(x[0])}; }},
    {"softmax_axis", [](const List& x) { return List{ops::softmax(x[0], 1)}; }},
    {"log_softmax", [](const List& x) { return List{ops::log_softmax(x[0])}; }},
    {"sparsemax", [](const List& x) { return List{ops::sparsemax(x[0])}; }},
    {"logical_not", [](const List& x) { return List{ops::logical_not(x[0])}; }},
    {"gelu", [](const List& x) { return List{ops::gelu(x[0], false)}; }},
    {"gelu_tanh", [](const List& x) { return List{ops::gelu(x[0], true)}; }},
    {"threshold", [](const List& x) { return List{ops::threshold(x[0], 1, 0.5)}; }},
    {"function_divide", [](const List& x) { return List{ops::div(x[0], x[1])}; }},
    {"function_maximum", [](const List& x) { return List{ops::maximum(x[0], x[1])}; }},
    {"function_minimum", [](const List& x) { return List{ops::minimum(x[0], x[1])}; }},
    {"function_power", [](const List& x) { return List{ops::pow(x[0], x[1])}; }},
    {"function_floor_divide", [](const List& x) { return List{ops::floor_div(x[0], x[1])}; }},
    {"function_mod", [](const List& x) { return List{ops::remainder(x[0], x[1])}; }},
    {"function_equal", [](const List& x) { return List{ops::equal(x[0], x[1])}; }},
    {"function_not_equal", [](const List& x) { return List{ops::not_equal(x[0], x[1])}; }},
    {"function_less", [](const List& x) { return List{ops::less(x[0], x[1])}; }},
    {"function_less_equal", [](const List& x) { return List{ops::less_equal(x[0], x[1])}; }},
    {"function_greater", [](const List& x) { return List{ops::greater(x[0], x[1])}; }},
    {"function_greater_equal", [](const List& x) { return List{ops::greater_equal(x[0], x[1])}; }},
    {"maximum_number", [](const List& x) { return List{ops::maximum(x[0], 1.0)}; }},
    {"power_number", [](const List& x) { return List{ops::pow(x[0], 2)}; }},
    {"logical_and",
     [](const List& x) {
       return List{ops::logical_and(x[0], ops::greater(x[1][{":", 0}], 1.0))};
     }},
    {"logical_or",
     [](const List& x) { return List{ops::logical_or(x[0], ops::greater(x[1][{":", 0}], 1.0))}; }},
    {"clip", [](const List& x) { return List{ops::clip(x[0], 0.5, 1.5)}; }},
    {"cast", [](const List& x) { return List{ops::cast(x[0], at::kFloat)}; }},
    {"where", [](const List& x) { return List{ops::where(ops::less(x[0], x[1]), x[0], 0.0)}; }},
    {"matmul", [](const List& x) { return List{ops::matmul(x[0], x[1])}; }},
    {"take", [](const List& x) { return List{ops::gather(x[0], x[1], 2)[{0}]}; }},
    {"take_along_axis",
     [](const List& x) { return List{ops::take_along_axis(x[0][{":", 0}], x[1], 1)}; }},
    {"take_along_axis_back",
     [](const List& x) {
       const T indices = x[1][{":", "None"}];
       return List{ops::take_along_axis(x[0], indices - 3, -1)};
     }},
    {"einsum", [](const List& x) { return List{ops::einsum("bij,bjk->bki", {x[0], x[1]})}; }},
    {"einsum_dots",
     [](const List& x) { return List{ops::einsum("...j, ...jk", {x[0][{":", 0}], x[1]})}; }},
    {"cumsum", [](const List& x) { return List{ops::cumsum(x[0], 2)}; }},
    {"cumsum_truth", [](const List& x) { return List{ops::cumsum(x[0], 1)}; }},
    {"top_k", [](const List& x) { return pair_of(ops::top_k(x[0], 3)); }},
    {"top_k_places",
     [](const List& x) {
       return List{ops::take_along_axis(x[1], ops::top_k(x[0], 2).second, 2)};
     }},
    {"top_k_whole", [](const List& x) { return pair_of(ops::top_k(x[0], 2)); }},
    {"one_hot", [](const List& x) { return List{ops::one_hot(x[0], 4)}; }},
    {"reshape", [](const List& x) { return List{ops::reshape(x[0], {-1, 3, 4})}; }},
    {"transpose", [](const List& x) { return List{ops::transpose(x[0], {0, 2, 1})}; }},
    {"transpose_all", [](const List& x) { return List{ops::transpose(x[0])}; }},
    {"expand_dims", [](const List& x) { return List{ops::expand_dims(x[0], 1)}; }},
    {"squeeze", [](const List& x) { return List{ops::squeeze(ops::sum(x[0], {1}, true), {1})}; }},
    {"broadcast_to", [](const List& x) { return List{ops::broadcast_to(ops::sum(x[0]), {2, 3})}; }},
    {"concatenate", [](const List& x) { return List{ops::concat({x[0], x[1]}, 1)}; }},
    {"stack", [](const List& x) { return List{ops::stack({x[0], x[1]}, 1)}; }},
    {"split", [](const List& x) { return ops::split(x[0], 3, 2); }},
    {"unstack", [](const List& x) { return ops::unstack(x[0], 1); }},
    {"tile", [](const List& x) { return List{ops::tile(x[0], {1, 2, 1})}; }},
    {"flip", [](const List& x) { return List{ops::flip(x[0], {2})}; }},
    {"flip_all", [](const List& x) { return List{ops::flip(x[0])}; }},
    {"roll", [](const List& x) { return List{ops::roll(x[0], {2}, {-1})}; }},
    {"roll_axes", [](const List& x) { return List{ops::roll(x[0], {1, -2}, {1, 2})}; }},
    {"roll_flat", [](const List& x) { return List{ops::roll(x[0], {5})}; }},
    {"tril", [](const List& x) { return List{ops::tril(x[0])}; }},
    {"triu_above", [](const List& x) { return List{ops::triu(x[0], -1)}; }},
    {"pad", [](const List& x) { return List{ops::pad(x[0], 2, 1, 2)}; }},
    {"pad_value", [](const List& x) { return List{ops::pad(x[0], 1, 1, 0, 0.5)}; }},
    {"residual",
     [](const List& x) {
       const T first = Dense(8, {.activation = "relu"})(x[0]);
       const T y = x[0] + first;
       const T second = Dense(8)(y);
       const T sum = 0.5 * second + y;
       return List{Dense(2)(sum)};
     }},
    {"shared_counter",
     [](const List& x) {
       const T y = x[0] + 1.0;
       const T z = Add()({x[0], y});
       const T sum = z + y;
       const Multiply times;
       return List{sum, times({x[0], y * z})};
     }},
    {"nested",
     [](const List& x) {
       const Input inner_x({3}, {.name = "inner_x"});
       const T scale = Dense(3, {.name = "scale"})(inner_x);
       const Functional inner({inner_x}, {scale * 2.0 - inner_x}, {.name = "inner"});
       return List{inner(x[0]) + x[0]};
     }},
    {"nested_ends",
     [](const List& x) {
       const Input inner_x({3}, {.name = "inner_x"});
       const T same = Dense(3, {.name = "same"})(inner_x);
       const T other = Dense(2, {.name = "other"})(inner_x);
       const Functional inner({inner_x}, {same, other}, {.name = "inner"});
       const List first = inner.outputs({x[0]}), second = inner.outputs({first[0]});
       return List{first[1], second[0]};
     }},
    {"masked",
     [](const List& x) {
       const T words = Embedding(3, 3, {.mask_zero = true, .name = "words"})(x[0]);
       return List{LSTM(2, {.name = "lstm"})(words * 2.0)};
     }},
};

/// Returns the inputs or outputs of a graph as lists; Keras writes a single tensor without a list.
Json ends_of(const Json& ends) {
  return ends.is_array() && ends[0].is_string() ? Json::array({ends}) : ends;
}

/// Returns the graph of a configuration: operations in full, but only names and calls of layers,
/// whose options are compared elsewhere.
Json graph_of(const Json& model) {
  const Json& config = model.at("config");
  Json graph = {{"inputs", ends_of(config.at("input_layers"))},
                {"outputs", ends_of(config.at("output_layers"))}};
  for (Json layer : config.at("layers")) {
    const bool operation = layer.at("module").get<std::string>().starts_with("keras.src.ops");
    const bool inner = layer.at("class_name") == "Functional";
    if (inner) graph["inner"].push_back(graph_of(layer));
    for (Json& call : layer.at("inbound_nodes")) {
      Json& kwargs = call.at("kwargs");
      // Keras also writes that a model's input has no mask, and the masks that layers compute.
      const bool follows = kwargs.contains("mask") && (kwargs["mask"].is_null() || !operation);
      if (follows) kwargs.erase("mask");
    }
    if (!operation) {
      layer = {{"class_name", layer.at("class_name")},
               {"name", layer.at("name")},
               {"inbound_nodes", layer.at("inbound_nodes")}};
    }
    graph["layers"].push_back(layer);
  }
  return graph;
}

ModelHandle made(const Json& golden) {
  List inputs;
  for (const Json& layer : golden.at("model").at("config").at("layers")) {
    if (layer.at("class_name") != "InputLayer") continue;
    const Json& config = layer.at("config");
    Shape shape;
    for (const Json& extent : config.at("batch_shape")) {
      if (!extent.is_null()) shape.push_back(extent.get<int64_t>());
    }
    inputs.push_back(Input(shape, {.dtype = config.at("dtype").get<std::string>(),
                                   .name = layer.at("name").get<std::string>()}));
  }
  // The inputs in the order of the graph.
  List in_order;
  for (const Json& end : golden.at("model").at("config").at("input_layers")) {
    for (const T& input : inputs) {
      if (input.node()->layer->name() == end.at(0)) in_order.push_back(input);
    }
  }
  const auto name = golden.at("model").at("config").at("name").get<std::string>();
  return Functional(in_order, makers.at(name)(in_order), {.name = name});
}

void check_made(const std::string& part) {
  for (const Json& golden : cases(part)) {
    CAPTURE(golden.at("model").at("config").at("name").dump());
    const ModelHandle model = made(golden);
    CHECK(summary_text(model.model(), {}, {80, false}) == golden.at("summary").get<std::string>());
    const Json written = parse_json(model.to_json(), "model");
    CHECK(graph_of(written).dump(1) == graph_of(golden.at("model")).dump(1));
    check_outputs(model, golden);
    const ModelHandle again = read_model(golden);
    CHECK(again.to_json() == model.to_json());
    check_outputs(again, golden);
  }
}

}  // namespace

TEST_CASE("operations of ops and of C++ are written, shown and computed as in Keras") {
  CHECK(cases("operations").size() == 142);
  check_made("operations");
}

TEST_CASE("operations and layers share names and numbering as in Keras") {
  const Json& all = cases("layers");
  CHECK(all.size() == 5);
  for (const Json& golden : all) {
    CAPTURE(golden.at("model").at("config").at("name").dump());
    const ModelHandle model = made(golden);
    check_outputs(model, golden);
    check_outputs(read_model(golden), golden);
    if (golden.at("model").at("config").at("name") == "masked") continue;  // Keras shows the mask
    CHECK(summary_text(model.model(), {}, {80, false}) == golden.at("summary").get<std::string>());
    const Json written = parse_json(model.to_json(), "model");
    CHECK(graph_of(written).dump(1) == graph_of(golden.at("model")).dump(1));
    CHECK(read_model(golden).to_json() == model.to_json());
  }
}

TEST_CASE("an operation is not a layer of the model") {
  const Input x({3}, {.name = "x"});
  const T y = x + Dense(3, {.name = "dense"})(x);
  const Functional model({x}, {y * y});
  std::vector<std::string> names;
  for (const LayerHandle& layer : model.layers()) names.push_back(layer->name());
  CHECK(names == std::vector<std::string>{"x", "dense"});
  CHECK(model->sublayers().size() == 4);
  CHECK(model.get_layer(1)->name() == "dense");
  CHECK_THROWS_WITH(model.get_layer("add"), Contains("the layer must be one of the model's"));
  CHECK(model.weights().size() == 2);
  CHECK_THAT(model_to_dot(model.model()), Contains("Multiply"));
  // Functions of ops still resolve where a function on tensors is expected.
  CHECK(Dense(3, {.activation = ops::relu})(x).shape() == Shape{-1, 3});
}

TEST_CASE("slices are written as in Python, and others are refused") {
  const Input x({4, 6}, {.name = "x"});
  CHECK((x[{":", "1:3"}].shape() == Shape{-1, 2, 6}));
  CHECK((x[{"...", -1}].shape() == Shape{-1, 4}));
  CHECK((x[{":", "None", 2}].shape() == Shape{-1, 1, 6}));
  CHECK((x[{":", "1::2"}].shape() == Shape{-1, 2, 6}));
  CHECK_THROWS_WITH((x[{":", "one"}]), Contains("\"...\" or \"None\". Received: \"one\""));
  CHECK_THROWS_WITH((x[{":", 4}]), Contains("an index of an axis of extent 4. Received: 4"));
  CHECK_THROWS_WITH((x[{0, 0, 0, 0}]), Contains("at most 3 indices and slices"));
}

TEST_CASE("operations on incompatible tensors are refused") {
  const Input x({4}, {.name = "x"}), y({5}, {.name = "y"}), m({4}, {.dtype = "bool", .name = "m"});
  CHECK_THROWS_AS(x + y, ShapeError);
  CHECK_THROWS_WITH(x + y, Contains("Add"));
  CHECK_THROWS_WITH(x + T(), Contains("an empty SymbolicTensor"));
  CHECK_THROWS_WITH(x.with_mask(m) + 1, Contains("does not support masking"));
  CHECK((x + m).dtype() == at::kFloat);
  CHECK((m + m * 1).dtype() == at::kInt);
  CHECK((ops::cast(x, at::kHalf) * 0.5).dtype() == at::kHalf);
  CHECK(ops::greater(x, 0).dtype() == at::kBool);
  const Input long_one({int64_t(1) << 31}, {.name = "long_one"});
  CHECK_THROWS_WITH(ops::unstack(long_one, 1), Contains("at most 1048576 slices of an axis"));
  CHECK_THROWS_WITH(ops::split(long_one, int64_t(1) << 31, 1), Contains("at most 1048576 slices"));
  // Positions are made only of data, never of a configuration.
  CHECK((long_one[{":", "::2"}].shape() == Shape{-1, int64_t(1) << 30}));
}

}  // namespace operations_test
