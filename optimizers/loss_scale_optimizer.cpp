#include <tessera/optimizers/loss_scale_optimizer.hpp>

#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/framework/nn/optimizer/internal/gradient_clipping.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(LossScaleOptimizerOptions& o, const Visit& visit) {
  visit("initial_scale", o.initial_scale);
  visit("dynamic_growth_steps", o.dynamic_growth_steps);
}

namespace {

const char* const loss_scale_name = "LossScaleOptimizer";

BaseOptions named(const std::string& name) {
  BaseOptions options;
  options.name = name;
  return options;
}

class LossScaling : public Optimizer {
 public:
  LossScaling(OptimizerHandle inner, const LossScaleOptimizerOptions& options)
      : Optimizer(loss_scale_name, 0.0, named(options.name)),
        inner_(std::move(inner)),
        options_(options),
        scale_(static_cast<float>(options.initial_scale)) {
    if (!(options.initial_scale > 0)) {
      throw ConfigError(loss_scale_name, "initial_scale is positive", str(options.initial_scale),
                        "use 32768");
    }
    if (options.dynamic_growth_steps < 1) {
      throw ConfigError(loss_scale_name, "dynamic_growth_steps is at least 1",
                        str(options.dynamic_growth_steps), "use 2000");
    }
    set_loss_scale_of(*inner_, std::nullopt);
  }

  Json config() const override {
    Json config = {{"name", name()}, {"inner_optimizer", optimizer_to_config(inner_)}};
    config.update(config_of(options_));
    return config;
  }
  std::vector<OptimizerHandle> inner() const override { return {inner_}; }
  double learning_rate() const override { return inner_->learning_rate(); }
  void set_learning_rate(const LearningRate& rate) override { inner_->set_learning_rate(rate); }
  bool has_schedule() const override { return inner_->has_schedule(); }
  int64_t iterations() const override { return inner_->iterations(); }
  bool scales_loss() const override { return true; }
  double scale() const { return scale_; }

  void build(const std::vector<Variable>& variables) override {
    Optimizer::build(variables);
    inner_->build(variables);
  }

  DTensor scale_loss(const DTensor& loss) const override {
    // Losses of half types leave no room for the scale.
    const bool half = at::isReducedFloatingType(loss.dtype());
    const DTensor wide = half ? ops::cast(loss, at::kFloat) : loss;
    return ops::scale_by(wide, scale_input(wide));
  }

  Json state() const override {
    return {{"dynamic_scale", scale_}, {"step_counter", finite_steps_}};
  }
  void restore(const Json& state) override {
    JsonObject object(state, JsonPath(loss_scale_name));
    const auto scale = object.take<double>("dynamic_scale");
    const auto count = object.take<int64_t>("step_counter");
    object.finish();
    if (!(scale > 0) || count < 0) {
      throw ConfigError(loss_scale_name, "a positive scale and a count of steps", state.dump(),
                        "restore what state() gave");
    }
    scale_ = static_cast<float>(scale);
    finite_steps_ = count;
  }

 protected:
  void take_gradients(const std::vector<DTensor>& gradients,
                      const std::vector<Variable>& variables) override {
    if (!all_finite(gradients)) {
      finite_steps_ = 0;
      scale_ /= 2;
      return;
    }
    const std::vector<double> factors(gradients.size(), 1 / static_cast<double>(scale_));
    apply_reduced(*inner_, scaled(gradients, factors), variables);
    if (is_abstract() || ++finite_steps_ < options_.dynamic_growth_steps) return;
    finite_steps_ = 0;
    if (std::isfinite(scale_ * 2)) scale_ *= 2;
  }

 private:
  /// An input of its step, so that a recorded one multiplies by the scale of its time.
  DTensor scale_input(const DTensor& loss) const {
    const auto host = [this, dtype = loss.dtype()](int64_t) {
      return at::scalar_tensor(scale_, at::TensorOptions().dtype(dtype));
    };
    const TracerScope unheard(nullptr);
    const DTensor made = host_input(host(steps()), loss.mesh());
    if (OpListener* const hears = unheard.former()) hears->input(made, steps(), host);
    return made;
  }

  OptimizerHandle inner_;
  LossScaleOptimizerOptions options_;
  float scale_;
  int64_t finite_steps_ = 0;  ///< since the scale last changed
};

const Registered registered_loss_scale(
    wrapping_optimizer_factories(), {loss_scale_name}, [](JsonObject& config) {
      const auto inner = config.take<Json>("inner_optimizer");
      const std::string where = config.path().key("inner_optimizer").text();
      auto options = options_from<LossScaleOptimizerOptions>(config);
      read_option(config, "name", options.name);
      return LossScaleOptimizer(optimizer_from_config(inner, where), options);
    });

}  // namespace

LossScaleOptimizer::LossScaleOptimizer(OptimizerHandle inner_optimizer,
                                       LossScaleOptimizerOptions options)
    : OptimizerHandle(std::make_shared<LossScaling>(std::move(inner_optimizer), options)) {}

OptimizerHandle LossScaleOptimizer::inner_optimizer() const { return get()->inner()[0]; }

double LossScaleOptimizer::dynamic_scale() const {
  return static_cast<const LossScaling&>(*get()).scale();
}

}  // namespace tessera
