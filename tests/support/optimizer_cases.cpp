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

/// Returns the replacement for the last element of a step's first gradient, if the case has one.
std::optional<double> spoiled(const Json& golden, size_t step) {
  const std::string key = std::to_string(step);
  if (!golden.contains("spoiled") || !golden.at("spoiled").contains(key)) return std::nullopt;
  return std::stod(golden.at("spoiled").at(key).get<std::string>());
}

/// Compares a number with the golden file's, if it has one for every step.
template <class Number>
std::string wrong_number(const Json& golden, const char* key, size_t step, const Number& number) {
  if (!golden.contains(key)) return "";
  const double expected = golden.at(key)[step].get<double>(), actual = number();
  if (std::abs(actual - expected) <= 1e-6 * expected + 1e-9) return "";
  return str("step ", step, ": ", key, " ", actual, ", Keras' is ", expected);
}

/// Updates weights as a case with gradient_accumulation_steps must: an optimizer with the same
/// other options, on one device, gets the mean gradients of as many steps.
class MeanGradientUpdates {
 public:
  explicit MeanGradientUpdates(const Json& golden) : golden_(golden) {
    Json& config = golden_["serialized"]["config"];
    every_ = config["gradient_accumulation_steps"].get<size_t>();
    config["gradient_accumulation_steps"] = nullptr;
    const Mesh one = create_mesh({{"batch", 1}});
    for (const auto& item : golden_file().at("shapes").items()) {
      const Layout layout = Layout::replicated(one, static_cast<int64_t>(item.value().size()));
      layouts_.push_back({layout, layout});
    }
    weights_ = golden_weights(layouts_, golden.value("constrained", std::vector<std::string>()));
    sums_.resize(weights_.size());
    optimizer_ = made_optimizer(golden_, weights_);
  }

  double learning_rate() const { return optimizer_->learning_rate(); }
  int64_t iterations() const { return optimizer_->iterations(); }
  void step(size_t number) {
    const std::vector<DTensor> gradients =
        golden_gradients(number, layouts_, spoiled(golden_, number));
    for (size_t v = 0; v < sums_.size(); ++v) {
      if (!gradients[v].defined()) continue;
      sums_[v] = sums_[v].defined() ? sums_[v] + gradients[v] : gradients[v];
    }
    if ((number + 1) % every_ != 0) return;
    // The last of the steps selects the variables.
    for (size_t v = 0; v < sums_.size(); ++v) {
      sums_[v] = gradients[v].defined() ? sums_[v] / static_cast<double>(every_) : DTensor();
    }
    optimizer_->apply(sums_, weights_);
    sums_.assign(sums_.size(), DTensor());
  }
  void finalize() { optimizer_->finalize_variable_values(weights_); }
  /// Empty if the weights are these.
  std::string differ(const std::vector<Variable>& weights) const {
    for (size_t v = 0; v < weights.size(); ++v) {
      const at::Tensor expected = weights_[v].value().full();
      const double scale = expected.abs().max().item<double>();
      const std::string wrong = difference(weights[v].value().full(), expected, 0, 3e-6 * scale);
      if (!wrong.empty()) return weights[v].path() + ": " + wrong;
    }
    return "";
  }

 private:
  Json golden_;
  size_t every_ = 0;
  std::vector<WeightLayouts> layouts_;
  std::vector<Variable> weights_;
  std::vector<DTensor> sums_;
  OptimizerHandle optimizer_;
};

}  // namespace

const Json& keras_optimizers(const std::string& part) { return golden_file().at(part); }

std::vector<WeightLayouts> mixed_weight_layouts(const Mesh& mesh, uint64_t seed) {
  std::vector<WeightLayouts> weight_layouts;
  for (const auto& item : golden_file().at("shapes").items()) {
    const auto rank = static_cast<int64_t>(item.value().size());
    const std::vector<Layout> layouts = all_layouts(mesh, rank);
    seed = mix(seed, 1);
    WeightLayouts entry{pick(layouts, seed), {}};
    const std::vector<Layout> pending = pending_layouts(mesh, rank, Reduce::sum);
    const bool pends = !pending.empty() && mix(seed, 2) % 4 != 0;
    entry.gradient = pends ? pick(pending, mix(seed, 3)) : pick(layouts, mix(seed, 3));
    std::vector<Layout> finer;
    std::copy_if(layouts.begin(), layouts.end(), std::back_inserter(finer),
                 [&](const Layout& layout) { return refines(layout, entry.weight); });
    if (mix(seed, 4) % 2) entry.slots = pick(finer, mix(seed, 5));
    weight_layouts.push_back(entry);
  }
  return weight_layouts;
}

std::string to_string(const std::vector<WeightLayouts>& weight_layouts) {
  std::string text;
  for (const WeightLayouts& entry : weight_layouts) {
    text += entry.weight.describe() + " <- " + entry.gradient.describe();
    if (entry.slots) text += " slots " + entry.slots->describe();
    text += "; ";
  }
  return text;
}

DTensor in_layout(const at::Tensor& full, const Layout& layout) {
  const ShardingPtr sharding = intern(full.sizes().vec(), full.scalar_type(), layout);
  const auto pends = [&](size_t d) { return layout.partial_dims() >> d & 1; };
  double addends = 1;
  for (size_t d = 0; d < sharding->groups.size(); ++d) {
    if (pends(d)) addends *= static_cast<double>(sharding->groups[d]);
  }
  Blocks blocks;
  for (const BlockInfo& block : sharding->blocks) {
    bool first = true;
    for (size_t d = 0; d < block.group.size(); ++d) first &= !pends(d) || block.group[d] == 0;
    blocks.push_back(cut(full, block.intervals) * (first ? 1 - (addends - 1) / 4 : 0.25));
  }
  return DTensor(sharding, std::move(blocks));
}

std::vector<Variable> golden_weights(const std::vector<WeightLayouts>& weight_layouts,
                                     const std::vector<std::string>& constrained) {
  std::vector<Variable> weights;
  for (const auto& item : golden_file().at("shapes").items()) {
    const WeightLayouts& entry = weight_layouts[weights.size()];
    VariableSpec spec{"dense/" + item.key(), item.value().get<Shape>(), at::kFloat, "zeros"};
    if (std::count(constrained.begin(), constrained.end(), item.key())) {
      spec.constraint = ConstraintHandle(std::make_shared<NonNegative>());
    }
    weights.emplace_back(spec);
    weights.back().place({spec.shape, entry.weight, std::nullopt, entry.slots});
    weights.back().assign(
        pack(tensor(golden_file().at("first").at(item.key()), spec.shape), entry.weight));
  }
  return weights;
}

std::vector<DTensor> golden_gradients(size_t step, const std::vector<WeightLayouts>& weight_layouts,
                                      std::optional<double> last) {
  std::vector<DTensor> gradients;
  for (const auto& item : golden_file().at("shapes").items()) {
    const Json& values = golden_file().at("gradients")[step].at(item.key());
    const Layout& layout = weight_layouts[gradients.size()].gradient;
    if (values.is_null()) {
      gradients.emplace_back();
      continue;
    }
    const at::Tensor full = tensor(values, item.value().get<Shape>());
    if (last && gradients.empty()) full.view(-1)[-1] = *last;
    gradients.push_back(in_layout(full, layout));
  }
  return gradients;
}

std::string wrong_case(const Json& golden, const std::vector<WeightLayouts>& weight_layouts) {
  const auto constrained = golden.value("constrained", std::vector<std::string>());
  const std::vector<Variable> weights = golden_weights(weight_layouts, constrained);
  const OptimizerHandle optimizer = made_optimizer(golden, weights);
  const auto marks = golden_file().at("marks").get<std::vector<size_t>>();
  size_t mark = 0;
  for (size_t step = 0; step < marks.back(); ++step) {
    const std::string wrong_rate =
        wrong_number(golden, "rates", step, [&] { return optimizer->learning_rate(); });
    if (!wrong_rate.empty()) return wrong_rate;
    optimizer->apply(golden_gradients(step, weight_layouts, spoiled(golden, step)), weights);
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

std::string wrong_accumulation(const Json& golden,
                               const std::vector<WeightLayouts>& weight_layouts) {
  const std::vector<Variable> weights =
      golden_weights(weight_layouts, golden.value("constrained", std::vector<std::string>()));
  const OptimizerHandle optimizer = made_optimizer(golden, weights);
  MeanGradientUpdates expected(golden);
  const size_t steps = golden_file().at("marks").back().get<size_t>();
  for (size_t step = 0; step < steps; ++step) {
    if (optimizer->learning_rate() != expected.learning_rate()) return str("rate of step ", step);
    optimizer->apply(golden_gradients(step, weight_layouts, spoiled(golden, step)), weights);
    expected.step(step);
    if (optimizer->iterations() != expected.iterations()) return str("updates after step ", step);
    if (step + 1 == steps && golden.contains("finalize")) {
      optimizer->finalize_variable_values(weights);
      expected.finalize();
    }
    const std::string wrong = expected.differ(weights);
    if (!wrong.empty()) return str("after ", step + 1, " steps: ", wrong);
  }
  return "";
}

}  // namespace tessera::test
