#include "tests/support/optimizer_cases.hpp"

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace tessera::test {

using namespace detail;

namespace {

/// keras.constraints.NonNeg.
struct NonNegative : Constraint {
  std::string class_name() const override { return "NonNegative"; }
  Json config() const override { return Json::object(); }
  DTensor operator()(const DTensor& weight) const override { return ops::relu(weight); }
};

const Json& golden_file() {
  static const Json all = read_json_file(golden_path("keras_optimizers.json").string());
  return all;
}

at::Tensor tensor(const Json& values, const Shape& shape) {
  return at::tensor(values.get<std::vector<double>>(), at::kDouble).reshape(shape).to(at::kFloat);
}

bool refines(const Layout& finer, const Layout& layout) {
  for (int64_t a = 0; a < layout.rank(); ++a) {
    const std::vector<int>&dims = layout.axis(a), &more = finer.axis(a);
    if (dims.size() > more.size() || !std::equal(dims.begin(), dims.end(), more.begin())) {
      return false;
    }
  }
  return true;
}

const Layout& pick(const std::vector<Layout>& from, uint64_t seed) {
  return from[seed % from.size()];
}

OptimizerHandle made_optimizer(const Json& golden, const std::vector<Variable>& weights) {
  const OptimizerHandle optimizer = optimizer_from_config(golden.at("serialized"));
  if (!golden.contains("exclude")) return optimizer;
  WeightDecayExclusions exclusions;
  const Json& exclude = golden.at("exclude");
  exclusions.var_names = exclude.at("var_names").get<std::vector<std::string>>();
  for (const Variable& weight : weights) {
    for (const Json& name : exclude.value("var_list", Json::array())) {
      if (weight.path() == "dense/" + name.get<std::string>()) exclusions.var_list = {weight};
    }
  }
  optimizer->exclude_from_weight_decay(exclusions);
  return optimizer;
}

std::string wrong_weights(const std::vector<Variable>& weights, const Json& after) {
  for (size_t v = 0; v < weights.size(); ++v) {
    const at::Tensor expected = tensor(after[v], weights[v].shape());
    const double scale = expected.abs().max().item<double>();
    const std::string wrong = difference(weights[v].value().full(), expected, 0, 3e-6 * scale);
    if (!wrong.empty()) return weights[v].path() + ": " + wrong;
  }
  return "";
}

/// What the last element of the first gradient of a step is instead, if that is spoiled.
std::optional<double> spoiled(const Json& golden, size_t step) {
  const std::string key = std::to_string(step);
  if (!golden.contains("spoiled") || !golden.at("spoiled").contains(key)) return std::nullopt;
  return std::stod(golden.at("spoiled").at(key).get<std::string>());
}

/// Compares a number with that of the golden file, if it has one for every step.
template <class Number>
std::string wrong_number(const Json& golden, const char* key, size_t step, const Number& number) {
  if (!golden.contains(key)) return "";
  const double expected = golden.at(key)[step].get<double>(), found = number();
  if (std::abs(found - expected) <= 1e-6 * expected + 1e-9) return "";
  return str("step ", step, ": ", key, " ", found, ", Keras' is ", expected);
}

}  // namespace

const Json& keras_optimizers(const std::string& part) { return golden_file().at(part); }

std::vector<WeightPlace> mixed_places(const Mesh& mesh, uint64_t seed) {
  std::vector<WeightPlace> places;
  for (const auto& item : golden_file().at("shapes").items()) {
    const auto rank = static_cast<int64_t>(item.value().size());
    const std::vector<Layout> layouts = all_layouts(mesh, rank);
    seed = mix(seed, 1);
    WeightPlace place{pick(layouts, seed), {}};
    const std::vector<Layout> pending = pending_layouts(mesh, rank, Reduce::sum);
    const bool pends = !pending.empty() && mix(seed, 2) % 4 != 0;
    place.gradient = pends ? pick(pending, mix(seed, 3)) : pick(layouts, mix(seed, 3));
    std::vector<Layout> finer;
    std::copy_if(layouts.begin(), layouts.end(), std::back_inserter(finer),
                 [&](const Layout& layout) { return refines(layout, place.weight); });
    if (mix(seed, 4) % 2) place.slots = pick(finer, mix(seed, 5));
    places.push_back(place);
  }
  return places;
}

std::string to_string(const std::vector<WeightPlace>& places) {
  std::string text;
  for (const WeightPlace& place : places) {
    text += place.weight.describe() + " <- " + place.gradient.describe();
    if (place.slots) text += " slots " + place.slots->describe();
    text += "; ";
  }
  return text;
}

DTensor in_layout(const at::Tensor& whole, const Layout& layout) {
  const ShardingPtr form = intern(whole.sizes().vec(), whole.scalar_type(), layout);
  const auto pends = [&](size_t d) { return layout.partial_dims() >> d & 1; };
  double addends = 1;
  for (size_t d = 0; d < form->groups.size(); ++d) {
    if (pends(d)) addends *= static_cast<double>(form->groups[d]);
  }
  Blocks blocks;
  for (const BlockInfo& block : form->blocks) {
    bool first = true;
    for (size_t d = 0; d < block.group.size(); ++d) first &= !pends(d) || block.group[d] == 0;
    blocks.push_back(cut(whole, block.intervals) * (first ? 1 - (addends - 1) / 4 : 0.25));
  }
  return DTensor(form, std::move(blocks));
}

std::vector<Variable> golden_weights(const std::vector<WeightPlace>& places,
                                     const std::vector<std::string>& constrained) {
  std::vector<Variable> weights;
  for (const auto& item : golden_file().at("shapes").items()) {
    const WeightPlace& place = places[weights.size()];
    VariableSpec spec{"dense/" + item.key(), item.value().get<Shape>(), at::kFloat, "zeros"};
    if (std::count(constrained.begin(), constrained.end(), item.key())) {
      spec.constraint = ConstraintHandle(std::make_shared<NonNegative>());
    }
    weights.emplace_back(spec);
    weights.back().place({spec.shape, place.weight, std::nullopt, place.slots});
    weights.back().assign(
        pack(tensor(golden_file().at("first").at(item.key()), spec.shape), place.weight));
  }
  return weights;
}

std::vector<DTensor> golden_gradients(size_t step, const std::vector<WeightPlace>& places,
                                      std::optional<double> last) {
  std::vector<DTensor> gradients;
  for (const auto& item : golden_file().at("shapes").items()) {
    const Json& values = golden_file().at("gradients")[step].at(item.key());
    const Layout& layout = places[gradients.size()].gradient;
    if (values.is_null()) {
      gradients.emplace_back();
      continue;
    }
    const at::Tensor whole = tensor(values, item.value().get<Shape>());
    if (last && gradients.empty()) whole.view(-1)[-1] = *last;
    gradients.push_back(in_layout(whole, layout));
  }
  return gradients;
}

std::string wrong_case(const Json& golden, const std::vector<WeightPlace>& places) {
  const auto constrained = golden.value("constrained", std::vector<std::string>());
  const std::vector<Variable> weights = golden_weights(places, constrained);
  const OptimizerHandle optimizer = made_optimizer(golden, weights);
  const auto marks = golden_file().at("marks").get<std::vector<size_t>>();
  size_t mark = 0;
  for (size_t step = 0; step < marks.back(); ++step) {
    const std::string wrong_rate =
        wrong_number(golden, "rates", step, [&] { return optimizer->learning_rate(); });
    if (!wrong_rate.empty()) return wrong_rate;
    optimizer->apply(golden_gradients(step, places, spoiled(golden, step)), weights);
    const std::string wrong_scale = wrong_number(golden, "scales", step, [&] {
      return optimizer->state().at("dynamic_scale").get<double>();
    });
    if (!wrong_scale.empty()) return wrong_scale;
    if (step + 1 != marks[mark]) continue;
    if (step + 1 == marks.back() && golden.contains("finalize")) {
      optimizer->finalize_variable_values(weights);
    }
    const std::string wrong = wrong_weights(weights, golden.at("after")[mark++]);
    if (!wrong.empty()) return str("after ", step + 1, " steps: ", wrong);
  }
  const auto iterations = golden.at("iterations").get<int64_t>();
  return optimizer->iterations() == iterations ? "" : "iterations are not Keras'";
}

}  // namespace tessera::test
