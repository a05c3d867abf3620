#include "tests/support/keras_layers.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/optimizers/sgd.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace tessera::test {

using namespace detail;

namespace {

/// The number of layouts on one mesh for each case.
constexpr size_t max_layer_layouts = 6;

LayerHandle new_layer(const Json& golden) {
  return layer_from_config(golden.at("layer"), JsonPath("golden"));
}

at::ScalarType dtype_of(const Json& tensor) {
  static const std::map<std::string, at::ScalarType> names = {
      {"float32", at::kFloat}, {"float64", at::kDouble}, {"int32", at::kInt},
      {"int64", at::kLong},    {"bool", at::kBool},      {"uint8", at::kByte}};
  return names.at(tensor.at("dtype").get<std::string>());
}

/// Returns every output's golden.
std::vector<Json> outputs_of(const Json& golden) {
  std::vector<Json> all = {golden.at("output")};
  if (golden.contains("more_outputs")) {
    for (const Json& output : golden.at("more_outputs")) all.push_back(output);
  }
  return all;
}

/// Attaches the golden's mask, if it has one, sharded like the value.
DTensor masked(const Json& golden, size_t i, const DTensor& value) {
  if (!golden.contains("masks") || i >= golden.at("masks").size()) return value;
  const Json& mask = golden.at("masks")[i];
  if (mask.is_null()) return value;
  const at::Tensor full = input_tensor(mask);
  std::vector<std::vector<int>> axes;
  for (int64_t a = 0; a < full.dim(); ++a) axes.push_back(value.layout().axis(a));
  return value.with_mask(pack(full, Layout::from_axes(value.mesh(), axes)));
}

void check_mask(const Json& expected, const DTensor& value) {
  REQUIRE(value.mask().defined() == !expected.is_null());
  if (!expected.is_null()) CHECK(at::equal(value.mask().full(), input_tensor(expected)));
}

/// Returns the inputs in these layouts, or replicated if there are none.
Inputs placed_inputs(const Json& golden, const Mesh& mesh, const std::vector<Layout>& layouts) {
  Inputs inputs;
  for (const at::Tensor& tensor : input_tensors(golden.at("inputs"))) {
    const size_t i = inputs.size();
    const Layout replicated = Layout::replicated(mesh, tensor.dim());
    inputs.push_back(masked(golden, i, pack(tensor, i < layouts.size() ? layouts[i] : replicated)));
  }
  return inputs;
}

/// Returns the layer with Keras' weights; those beyond the list of layouts are replicated.
LayerHandle placed_layer(const Json& golden, const Inputs& inputs,
                         const std::vector<Layout>& layouts) {
  const LayerHandle layer = new_layer(golden);
  Shapes shapes;
  for (const DTensor& input : inputs) shapes.push_back(input.shape());
  layer->build(shapes);
  std::vector<Variable> weights = layer->weights();
  REQUIRE(weights.size() == golden.at("weights").size());
  for (size_t w = 0; w < weights.size(); ++w) {
    const Layout replicated =
        Layout::replicated(inputs[0].mesh(), static_cast<int64_t>(weights[w].shape().size()));
    weights[w].place({weights[w].shape(), w < layouts.size() ? layouts[w] : replicated});
    const at::Tensor value = golden_tensor(golden.at("weights")[w], weights[w].dtype());
    weights[w].assign(pack(value, weights[w].layout()));
  }
  return layer;
}

/// Compares the outputs and penalties of one call with Keras'. Returns the loss to differentiate.
DTensor loss_of(const Json& golden, const LayerHandle& layer, const std::vector<DTensor>& outputs) {
  const std::vector<Json> expected = outputs_of(golden);
  REQUIRE(outputs.size() == expected.size());
  DTensor loss;
  for (size_t o = 0; o < outputs.size(); ++o) {
    CAPTURE(o);
    const DTensor& y = outputs[o];
    CHECK(unlike(y.full(), expected[o]) == "");
    if (golden.contains("output_masks")) check_mask(golden.at("output_masks")[o], y);
    const at::Tensor factors = upstream(at::empty(y.shape(), y.dtype()));
    const DTensor part = ops::sum(y * pack(factors, Layout::replicated(y.mesh(), y.rank())));
    loss = loss.defined() ? loss + part : part;
  }
  const std::vector<DTensor> penalties = layer->losses();
  REQUIRE(penalties.size() == golden.at("losses").size());
  for (size_t i = 0; i < penalties.size(); ++i) {
    CHECK(penalties[i].full().item<double>() ==
          Approx(golden.at("losses")[i].get<double>()).epsilon(1e-5));
    loss = loss + penalties[i];
  }
  return loss;
}

/// Compares one call and its gradients with Keras'. Returns the weights after a step of SGD.
std::vector<at::Tensor> train(const Json& golden, const LayerHandle& layer, const Inputs& inputs) {
  std::vector<DTensor> sources;
  for (const DTensor& input : inputs) {
    if (at::isFloatingType(input.dtype())) sources.push_back(input);
  }
  const size_t n_inputs = sources.size();
  std::vector<Variable> trained = layer->trainable_weights();
  GradientTape tape;
  for (const DTensor& source : sources) tape.watch(source);
  for (const Variable& weight : trained) sources.push_back(weight.value());
  const DTensor loss = loss_of(golden, layer, layer.outputs(inputs));
  std::vector<DTensor> gradients = tape.gradient(loss, sources);
  REQUIRE(gradients.size() == golden.at("gradients").size());
  for (size_t g = 0; g < gradients.size(); ++g) {
    CAPTURE(g);
    REQUIRE(gradients[g].defined());
    if (g < n_inputs) CHECK(gradients[g].layout() == sources[g].layout());
    CHECK(unlike(gradients[g].full(), golden.at("gradients")[g]) == "");
  }
  gradients.erase(gradients.begin(), gradients.begin() + static_cast<int64_t>(n_inputs));
  if (!trained.empty()) SGD(0.1)->apply(gradients, trained);
  std::vector<at::Tensor> after;
  for (const Variable& weight : layer->weights()) after.push_back(weight.value().full().clone());
  return after;
}

/// Whether a key may be missing in this library's configurations.
bool left_out(const std::string& key) {
  return key == "quantization_config" || key == "input_axes" || key == "output_axes";
}

/// Returns the name of a dtype policy that Keras serialized.
std::string policy_name(const Json& config) {
  if (config.contains("name")) return config.at("name");
  return str(config.at("mode").get<std::string>(), "_from_",
             config.at("source_name").get<std::string>());
}

void check_options(const Json& actual, const Json& expected) {
  for (const auto& [key, value] : expected.items()) {
    if (left_out(key)) continue;
    CAPTURE(key);
    REQUIRE(actual.contains(key));
    const Json& here = actual.at(key);
    if (key == "dtype" && value.is_object()) {
      CHECK(here == policy_name(value.at("config")));
    } else if (value.is_object() && value.contains("class_name")) {
      REQUIRE(here.is_object());
      CHECK(here.at("class_name") == value.at("class_name"));
      check_options(here.at("config"), value.at("config"));
    } else if (value.is_array() && !value.empty() && value[0].is_object()) {
      // The cells of StackedRNNCells.
      REQUIRE(here.size() == value.size());
      for (size_t i = 0; i < value.size(); ++i) {
        CHECK(here[i].at("class_name") == value[i].at("class_name"));
        check_options(here[i].at("config"), value[i].at("config"));
      }
    } else {
      CHECK(here == value);
    }
  }
}

}  // namespace

const Json& golden_part(const std::string& file, const std::string& part) {
  static std::map<std::string, Json> files;
  auto it = files.find(file);
  if (it == files.end()) {
    it = files.emplace(file, read_json_file(golden_path(file).string())).first;
  }
  return it->second.at(part);
}

at::Tensor input_tensor(const Json& json) { return golden_tensor(json, dtype_of(json)); }

std::vector<at::Tensor> input_tensors(const Json& list) {
  std::vector<at::Tensor> tensors;
  for (const Json& json : list) tensors.push_back(input_tensor(json));
  return tensors;
}

std::string unlike(const at::Tensor& actual, const Json& golden) {
  const at::Tensor expected = golden_tensor(golden, actual.scalar_type());
  const double scale =
      expected.numel() == 0 ? 0 : expected.abs().max().to(at::kDouble).item<double>();
  const double tolerance = actual.scalar_type() == at::kDouble ? 1e-9 : 1e-5;
  return difference(actual, expected, 0, tolerance * std::max(scale, 1e-3));
}

DTensor on_one_device(const at::Tensor& tensor) {
  return pack(tensor, Layout::replicated(default_mesh(), tensor.dim()));
}

LayerHandle layer_of(const Json& golden, const Inputs& inputs) {
  return placed_layer(golden, inputs, {});
}

at::Tensor upstream(const at::Tensor& output) {
  return (at::arange(output.numel()).remainder(7) / 2.0 - 1.25)
      .reshape(output.sizes())
      .to(output.scalar_type());
}

void check_values(const Json& golden) {
  const Inputs inputs = placed_inputs(golden, default_mesh(), {});
  train(golden, layer_of(golden, inputs), inputs);
}

void check_layouts(const Json& golden) {
  const Inputs full_inputs = placed_inputs(golden, default_mesh(), {});
  const LayerHandle alone = layer_of(golden, full_inputs);
  const std::vector<at::Tensor> expected = train(golden, alone, full_inputs);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2}, {4}, {2, 2}}) {
    const Mesh mesh = virtual_mesh(sizes);
    std::vector<std::vector<Layout>> lists;
    for (const DTensor& input : full_inputs) lists.push_back(all_layouts(mesh, input.rank()));
    for (const Variable& weight : alone->weights()) {
      lists.push_back(all_layouts(mesh, static_cast<int64_t>(weight.shape().size())));
    }
    size_t turn = 0;
    for (const std::vector<Layout>& layouts :
         choices(lists, max_layer_layouts, text_seed(golden.at("layer").dump()))) {
      const BlockPolicyScope policy(turn++ % 2 ? BlockPolicy::per_worker : BlockPolicy::per_device);
      CAPTURE(short_name(mesh), short_name(layouts), to_string(block_policy()));
      const auto border = layouts.begin() + static_cast<int64_t>(full_inputs.size());
      const Inputs inputs = placed_inputs(golden, mesh, {layouts.begin(), border});
      const LayerHandle layer = placed_layer(golden, inputs, {border, layouts.end()});
      const std::vector<at::Tensor> after = train(golden, layer, inputs);
      for (size_t w = 0; w < after.size(); ++w) {
        CHECK(difference(after[w], expected[w], 1e-5, 1e-5) == "");
      }
    }
  }
  if (golden.contains("more_outputs") || golden.contains("masks")) return;
  const auto call = [&](const Inputs& inputs) { return layer_of(golden, inputs)(inputs); };
  const at::Tensor output = golden_tensor(golden.at("output"), alone->dtype_policy().compute);
  CHECK(wrong_values(input_tensors(golden.at("inputs")), call, output, 3e-5) == "");
}

void check_plan(const Json& golden) {
  const std::vector<Json> expected = outputs_of(golden);
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{1}, {2, 2}}) {
    const AbstractScope plans_only(virtual_mesh(sizes));
    Inputs inputs;
    for (const at::Tensor& input : input_tensors(golden.at("inputs"))) {
      const DTensor value = filled(input.sizes().vec(), 0, input.scalar_type());
      inputs.push_back(masked(golden, inputs.size(), value));
    }
    const LayerHandle layer = new_layer(golden);
    const std::vector<DTensor> outputs = layer.outputs(inputs);
    REQUIRE(outputs.size() == expected.size());
    for (size_t o = 0; o < outputs.size(); ++o) {
      CHECK(outputs[o].shape() == expected[o].at("shape").get<Shape>());
    }
    for (const Variable& weight : layer->weights()) CHECK_FALSE(weight.has_value());
  }
}

void check_config(const Json& golden) {
  const LayerHandle layer = new_layer(golden);
  CHECK(layer->class_name() == golden.at("layer").at("class_name"));
  check_options(layer->config(), golden.at("layer").at("config"));
}

void check_layers(const Json& cases, const std::function<bool(size_t row)>& differs) {
  Json others = Json::array();
  for (size_t row = 0; row < cases.size(); ++row) {
    const Json& golden = cases[row];
    if (!differs(row)) {
      others.push_back(golden);
      continue;
    }
    CAPTURE(row);
    const Inputs inputs = placed_inputs(golden, default_mesh(), {});
    const DTensor output = layer_of(golden, inputs).outputs(inputs)[0];
    CHECK(unlike(output.full(), golden.at("output")) != "");
  }
  check_layers(others);
}

void check_layers(const Json& cases) {
  REQUIRE(!cases.empty());
  for (const Json& golden : cases) {
    CAPTURE(golden.at("layer").dump());
    check_values(golden);
    check_layouts(golden);
    check_plan(golden);
    check_config(golden);
  }
}

}  // namespace tessera::test
