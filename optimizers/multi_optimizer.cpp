#include <tessera/optimizers/multi_optimizer.hpp>

#include <algorithm>
#include <map>

#include <re2/re2.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/option_fields.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(MultiOptimizerOptions& o, const Visit& visit) {
  visit("loss_scale_factor", o.loss_scale_factor);
  visit("name", o.name);
}

namespace {

const char* const multi_name = "MultiOptimizer";

BaseOptions base_of(const MultiOptimizerOptions& options) {
  BaseOptions base;
  base.loss_scale_factor = options.loss_scale_factor;
  base.name = options.name;
  return base;
}

void check_ordinary(const std::string& where, const OptimizerHandle& optimizer) {
  if (optimizer && optimizer->inner().empty()) return;
  throw ConfigError(where, "an optimizer without inner ones",
                    optimizer ? optimizer->class_name() : "none",
                    "use an optimizer such as Adam or SGD");
}

class CompositeOptimizer : public Optimizer {
 public:
  CompositeOptimizer(std::optional<OptimizerMap> map, MultiOptimizer::Choose choose,
                     const MultiOptimizerOptions& options)
      : Optimizer(multi_name, 0.0, base_of(options)),
        map_(std::move(map)),
        choose_(std::move(choose)),
        factor_(options.loss_scale_factor) {
    if (!map_) return;
    for (const auto& [key, optimizer] : map_->items()) index_of(optimizer);
    index_of(map_->default_optimizer());
  }

  Json config() const override {
    Json map;
    if (map_) {
      map = {{"module", "keras.optimizers"},
             {"class_name", "OptimizerMap"},
             {"config", map_->config()},
             {"registered_name", nullptr}};
    }
    Json config = {{"optimizer_map", map}};
    config.update(config_of(MultiOptimizerOptions{factor_, name()}));
    return config;
  }
  std::vector<OptimizerHandle> inner() const override { return optimizers_; }

  double learning_rate() const override { no_rate(); }
  void set_learning_rate(const LearningRate&) override { no_rate(); }
  bool has_schedule() const override { return true; }
  bool takes_rows() const override {
    return std::any_of(optimizers_.begin(), optimizers_.end(),
                       [](const OptimizerHandle& each) { return each->takes_rows(); });
  }

  void build(const std::vector<Variable>& variables) override {
    Optimizer::build(variables);
    std::map<size_t, std::vector<Variable>> by_optimizer;
    for (const Variable& variable : variables) by_optimizer[select(variable)].push_back(variable);
    for (const auto& [index, assigned] : by_optimizer) optimizers_[index]->build(assigned);
  }

 protected:
  void set_loss_scale_factor(const std::optional<double>& factor) override {
    Optimizer::set_loss_scale_factor(factor);
    factor_ = factor;
    for (const OptimizerHandle& optimizer : optimizers_) set_loss_scale_of(*optimizer, factor);
  }

  void take_gradients(const std::vector<DTensor>& gradients,
                      const std::vector<Variable>& variables) override {
    std::map<size_t, std::pair<std::vector<DTensor>, std::vector<Variable>>> by_optimizer;
    for (size_t i = 0; i < variables.size(); ++i) {
      auto& [group_gradients, group_variables] = by_optimizer[select(variables[i])];
      group_gradients.push_back(gradients[i]);
      group_variables.push_back(variables[i]);
    }
    for (const auto& [index, assigned] : by_optimizer) {
      apply_reduced(*optimizers_[index], assigned.first, assigned.second);
    }
  }

 private:
  [[noreturn]] static void no_rate() {
    throw StateError(multi_name, "a MultiOptimizer has no learning rate of its own",
                     "a use of its rate", "use the rates of optimizers()");
  }

  size_t index_of(const OptimizerHandle& optimizer) {
    const auto it = std::find_if(
        optimizers_.begin(), optimizers_.end(),
        [&](const OptimizerHandle& known) { return known.operator->() == optimizer.operator->(); });
    const auto index = static_cast<size_t>(it - optimizers_.begin());
    if (it == optimizers_.end()) {
      set_loss_scale_of(*optimizer, factor_);
      optimizers_.push_back(optimizer);
    }
    return index;
  }

  size_t select(const Variable& variable) {
    const auto known = optimizer_index_.find(variable.id());
    if (known != optimizer_index_.end()) return known->second;
    const OptimizerHandle optimizer = map_ ? map_->at(variable.path()) : choose_(variable);
    check_ordinary(str(multi_name, ", ", variable.path()), optimizer);
    return optimizer_index_[variable.id()] = index_of(optimizer);
  }

  std::optional<OptimizerMap> map_;
  MultiOptimizer::Choose choose_;
  std::optional<double> factor_;
  std::vector<OptimizerHandle> optimizers_;
  std::map<uint64_t, size_t> optimizer_index_;  ///< optimizer index by variable id
};

MultiOptimizer multi_from(JsonObject& config) {
  const JsonPath path = config.path().key("optimizer_map");
  const auto json = config.take<Json>("optimizer_map");
  auto [class_name, map_config] = read_serialized(json, path);
  if (class_name != "OptimizerMap") {
    throw ConfigError(path.text(), "an OptimizerMap", in_quotes(class_name),
                      "write the class that Keras serializes");
  }
  const OptimizerMap map = OptimizerMap::from_config(map_config);
  map_config.finish();
  return MultiOptimizer(map, options_from<MultiOptimizerOptions>(config));
}

const Registered registered_multi(wrapping_optimizer_factories(), {multi_name}, multi_from);

}  // namespace

OptimizerMap::OptimizerMap(OptimizerHandle default_optimizer, const Items& optimizer_map)
    : default_(std::move(default_optimizer)) {
  check_ordinary("OptimizerMap, default_optimizer", default_);
  for (const auto& [key, optimizer] : optimizer_map) set(key, optimizer);
}

Json OptimizerMap::config() const {
  Json items = Json::object();
  for (const auto& [key, optimizer] : items_) items[key] = optimizer_to_config(optimizer);
  return {{"default_optimizer", optimizer_to_config(default_)}, {"optimizer_map", items}};
}

OptimizerMap OptimizerMap::from_config(JsonObject& config) {
  const JsonPath path = config.path();
  OptimizerMap map(optimizer_from_config(config.take<Json>("default_optimizer"),
                                         path.key("default_optimizer").text()));
  const auto items = config.take<Json>("optimizer_map");
  if (!items.is_object()) json_fail(items, path.key("optimizer_map"), "an object");
  for (const auto& [key, json] : items.items()) {
    map.set(key, optimizer_from_config(json, path.key("optimizer_map").key(key).text()));
  }
  return map;
}

void OptimizerMap::set(const std::string& key, const OptimizerHandle& optimizer) {
  const std::string where = str("OptimizerMap, ", in_quotes(key));
  check_ordinary(where, optimizer);
  if (std::any_of(items_.begin(), items_.end(), [&](const auto& i) { return i.first == key; })) {
    throw ConfigError(where, "keys are unique", "this key twice", "keep one of them");
  }
  const re2::RE2 compiled(key, re2::RE2::Quiet);
  if (!compiled.ok()) {
    throw ConfigError(where, "an RE2 expression", compiled.error(),
                      "put a backslash before special characters");
  }
  items_.emplace_back(key, optimizer);
}

const OptimizerHandle& OptimizerMap::at(const std::string& path) const {
  const OptimizerHandle* match = nullptr;
  for (const auto& [key, optimizer] : items_) {
    if (key == path) return optimizer;
  }
  for (const auto& [key, optimizer] : items_) {
    if (!re2::RE2::FullMatch(path, key)) continue;
    if (match) {
      throw ConfigError(str("OptimizerMap, ", path), "at most one key may match the path",
                        str(in_quotes(key), " and another key"), "make the expressions disjoint");
    }
    match = &optimizer;
  }
  return match ? *match : default_;
}

MultiOptimizer::MultiOptimizer(OptimizerMap optimizer_map, MultiOptimizerOptions options)
    : OptimizerHandle(
          std::make_shared<CompositeOptimizer>(std::move(optimizer_map), nullptr, options)) {}

MultiOptimizer::MultiOptimizer(Choose optimizer_map, MultiOptimizerOptions options)
    : OptimizerHandle(
          std::make_shared<CompositeOptimizer>(std::nullopt, std::move(optimizer_map), options)) {}

}  // namespace tessera
