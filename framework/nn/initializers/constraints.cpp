#include <tessera/framework/nn/initializers/constraints.hpp>

#include <cmath>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/framework/nn/internal/epsilon.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/reduce.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(MaxNormOptions& o, const Visit& visit) {
  visit("max_value", o.max_value);
}

template <class Visit>
void fields(UnitNormOptions&, const Visit&) {}

template <class Visit>
void fields(MinMaxNormOptions& o, const Visit& visit) {
  visit("min_value", o.min_value);
  visit("max_value", o.max_value);
  visit("rate", o.rate);
}

namespace {

/// Returns the options' configuration and "axis", an integer or a list.
template <class Options>
Json norm_config(const Options& options) {
  Json config = config_of(options);
  config["axis"] = axes_json(options.axis);
  return config;
}
template <class Made, class Options>
ConstraintHandle made_of_norm(JsonObject& config) {
  auto options = options_from<Options>(config);
  if (config.has("axis")) options.axis = take_axes(config, "axis");
  return Made(options);
}

const Registered registered_non_neg(constraint_factories(), {"non_neg"},
                                    [](JsonObject&) { return NonNeg(); });
const Registered registered_max_norm(constraint_factories(), {"max_norm"},
                                     made_of_norm<MaxNorm, MaxNormOptions>);
const Registered registered_unit_norm(constraint_factories(), {"unit_norm"},
                                      made_of_norm<UnitNorm, UnitNormOptions>);
const Registered registered_min_max_norm(constraint_factories(), {"min_max_norm"},
                                         made_of_norm<MinMaxNorm, MinMaxNormOptions>);

void check(const char* where, const char* name, double bound) {
  if (std::isfinite(bound) && bound >= 0) return;
  throw ConfigError(where, str(name, " is finite and not negative"), str(bound), "give a norm");
}

/// Returns change(weight, its norms over `axis`), computed in float32 for float16 and bfloat16:
/// squares in float16 overflow, and the epsilon next to a norm is 0.
template <class Change>
DTensor with_norms(const DTensor& weight, const ops::Axes& axis, const Change& change) {
  const DTensor wide = widened(weight);
  const DTensor norm = ops::sqrt(ops::sum(ops::square(wide), axis, true));
  return ops::cast(change(wide, norm), weight.dtype());
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
  Json config() const override { return norm_config(options_); }
  DTensor operator()(const DTensor& weight) const override {
    return with_norms(weight, options_.axis, [&](const DTensor& w, const DTensor& norm) {
      return w * (ops::clip(norm, 0, options_.max_value) / (norm + keras_epsilon));
    });
  }

 private:
  MaxNormOptions options_;
};

class UnitNormConstraint : public Constraint {
 public:
  explicit UnitNormConstraint(UnitNormOptions options) : options_(std::move(options)) {}
  std::string class_name() const override { return "UnitNorm"; }
  Json config() const override { return norm_config(options_); }
  DTensor operator()(const DTensor& weight) const override {
    return with_norms(weight, options_.axis, [](const DTensor& w, const DTensor& norm) {
      return w / (norm + keras_epsilon);
    });
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
  Json config() const override { return norm_config(options_); }
  DTensor operator()(const DTensor& weight) const override {
    return with_norms(weight, options_.axis, [&](const DTensor& w, const DTensor& norm) {
      const DTensor inside = ops::clip(norm, options_.min_value, options_.max_value);
      const DTensor desired = inside * options_.rate + norm * (1 - options_.rate);
      return w * (desired / (norm + keras_epsilon));
    });
  }

 private:
  MinMaxNormOptions options_;
};

template <class Made, class... Args>
ConstraintHandle make_constraint_of(Args&&... args) {
  return std::shared_ptr<const Constraint>(std::make_shared<Made>(std::forward<Args>(args)...));
}

}  // namespace

NonNeg::NonNeg() : ConstraintHandle(make_constraint_of<NonNegConstraint>()) {}
MaxNorm::MaxNorm(const MaxNormOptions& options)
    : ConstraintHandle(make_constraint_of<MaxNormConstraint>(options)) {}
UnitNorm::UnitNorm(const UnitNormOptions& options)
    : ConstraintHandle(make_constraint_of<UnitNormConstraint>(options)) {}
MinMaxNorm::MinMaxNorm(const MinMaxNormOptions& options)
    : ConstraintHandle(make_constraint_of<MinMaxNormConstraint>(options)) {}

ConfigFactories<ConstraintHandle>& detail::constraint_factories() {
  static ConfigFactories<ConstraintHandle> factories;
  return factories;
}

ConstraintHandle detail::make_constraint(const std::string& name) {
  return make_default("constraint", constraint_factories(), name);
}

ConstraintHandle::ConstraintHandle(const char* name) : ConstraintHandle(make_constraint(name)) {}

}  // namespace tessera
