#include <tessera/framework/nn/initializers/constraints.hpp>

#include <cmath>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/epsilon.hpp>
#include <tessera/framework/ops/elementwise.hpp>

namespace tessera {
namespace {

void check(const char* where, const char* name, double bound) {
  if (std::isfinite(bound) && bound >= 0) return;
  throw ConfigError(where, str(name, " is finite and not negative"), str(bound),
                    "give the length of a vector");
}

DTensor norms(const DTensor& weight, const ops::Axes& axis) {
  return ops::sqrt(ops::sum(ops::square(weight), axis, true));
}

class NonNegConstraint : public Constraint {
 public:
  std::string class_name() const override { return "NonNeg"; }
  Json config() const override { return Json::object(); }
  DTensor operator()(const DTensor& weight) const override { return ops::relu(weight); }
};

class MaxNormConstraint : public Constraint {
 public:
  explicit MaxNormConstraint(MaxNormOptions options) : options_(std::move(options)) {
    check("MaxNorm", "max_value", options_.max_value);
  }
  std::string class_name() const override { return "MaxNorm"; }
  Json config() const override {
    return {{"max_value", options_.max_value}, {"axis", axes_json(options_.axis)}};
  }
  DTensor operator()(const DTensor& weight) const override {
    const DTensor norm = norms(weight, options_.axis);
    return weight * (ops::clip(norm, 0, options_.max_value) / (norm + keras_epsilon));
  }

 private:
  MaxNormOptions options_;
};

class UnitNormConstraint : public Constraint {
 public:
  explicit UnitNormConstraint(UnitNormOptions options) : options_(std::move(options)) {}
  std::string class_name() const override { return "UnitNorm"; }
  Json config() const override { return {{"axis", axes_json(options_.axis)}}; }
  DTensor operator()(const DTensor& weight) const override {
    return weight / (norms(weight, options_.axis) + keras_epsilon);
  }

 private:
  UnitNormOptions options_;
};

class MinMaxNormConstraint : public Constraint {
 public:
  explicit MinMaxNormConstraint(MinMaxNormOptions options) : options_(std::move(options)) {
    check("MinMaxNorm", "min_value", options_.min_value);
    check("MinMaxNorm", "max_value", options_.max_value);
    check("MinMaxNorm", "rate", options_.rate);
  }
  std::string class_name() const override { return "MinMaxNorm"; }
  Json config() const override {
    return {{"min_value", options_.min_value},
            {"max_value", options_.max_value},
            {"rate", options_.rate},
            {"axis", axes_json(options_.axis)}};
  }
  DTensor operator()(const DTensor& weight) const override {
    const DTensor norm = norms(weight, options_.axis);
    const DTensor inside = ops::clip(norm, options_.min_value, options_.max_value);
    const DTensor desired = inside * options_.rate + norm * (1 - options_.rate);
    return weight * (desired / (norm + keras_epsilon));
  }

 private:
  MinMaxNormOptions options_;
};

template <class Made, class... Args>
ConstraintHandle make_constraint_of(Args&&... args) {
  return std::shared_ptr<const Constraint>(std::make_shared<Made>(std::forward<Args>(args)...));
}

ops::Axes axis_of(JsonObject& config) {
  return config.has("axis") ? take_axes(config, "axis") : ops::Axes{0};
}

ConstraintHandle max_norm(JsonObject& config) {
  const auto max_value = config.take_or<double>("max_value", 2);
  return MaxNorm({.max_value = max_value, .axis = axis_of(config)});
}

ConstraintHandle min_max_norm(JsonObject& config) {
  MinMaxNormOptions options;
  options.min_value = config.take_or("min_value", options.min_value);
  options.max_value = config.take_or("max_value", options.max_value);
  options.rate = config.take_or("rate", options.rate);
  options.axis = axis_of(config);
  return MinMaxNorm(options);
}

}  // namespace

NonNeg::NonNeg() : ConstraintHandle(make_constraint_of<NonNegConstraint>()) {}
MaxNorm::MaxNorm(const MaxNormOptions& options)
    : ConstraintHandle(make_constraint_of<MaxNormConstraint>(options)) {}
UnitNorm::UnitNorm(const UnitNormOptions& options)
    : ConstraintHandle(make_constraint_of<UnitNormConstraint>(options)) {}
MinMaxNorm::MinMaxNorm(const MinMaxNormOptions& options)
    : ConstraintHandle(make_constraint_of<MinMaxNormConstraint>(options)) {}

const ConfigFactories<ConstraintHandle>& constraint_factories() {
  static const ConfigFactories<ConstraintHandle> factories = {
      {"max_norm", max_norm},
      {"min_max_norm", min_max_norm},
      {"non_neg", [](JsonObject&) { return NonNeg(); }},
      {"unit_norm", [](JsonObject& config) { return UnitNorm({.axis = axis_of(config)}); }},
  };
  return factories;
}

ConstraintHandle make_constraint(const std::string& name) {
  return make_default("constraint", constraint_factories(), name);
}

ConstraintHandle::ConstraintHandle(const char* name) : ConstraintHandle(make_constraint(name)) {}

}  // namespace tessera
