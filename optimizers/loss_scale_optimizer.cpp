#include <tessera/optimizers/loss_scale_optimizer.hpp>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/optimizer/internal/block_sums.hpp>
#include <tessera/framework/optimizer/internal/gradient_clipping.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/deferred_checks.hpp>
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
  int64_t iterations() const override {
    finish_pending_step();
    return inner_->iterations();
  }
  bool scales_loss() const override { return true; }
  bool takes_rows() const override { return false; }
  double scale() const {
    finish_pending_step();
    return scale_;
  }

  void build(const std::vector<Variable>& variables) override {
    Optimizer::build(variables);
    inner_->build(variables);
  }

  DTensor scale_loss(const DTensor& loss) const override {
    // A float16 or bfloat16 loss has no room for the scale.
    const bool half = at::isReducedFloatingType(loss.dtype());
    const DTensor wide = half ? ops::cast(loss, at::kFloat) : loss;
    if (!goes_on_gpus(wide)) return ops::scale_by(wide, scale_input(wide));
    const DTensor& scale = scale_on_gpus(wide.mesh());
    // A captured step keeps this tensor, so that a replay multiplies by the value it then holds.
    if (OpListener* const listener = tracer()) listener->constant(scale);
    return ops::scale_by(wide, ops::cast(scale, wide.dtype()));
  }

  Json state() const override {
    finish_pending_step();
    return {{"dynamic_scale", scale_}, {"step_counter", finite_steps_}};
  }
  void restore(const Json& state) override {
    JsonObject object(state, JsonPath(loss_scale_name));
    const auto scale = object.take<double>("dynamic_scale");
    const auto count = object.take<int64_t>("step_counter");
    object.finish();
    if (!(scale > 0) || count < 0) {
      throw ConfigError(loss_scale_name,
                        "dynamic_scale must be positive and step_counter at least 0", state.dump(),
                        "restore the result of state()");
    }
    scale_ = static_cast<float>(scale);
    finite_steps_ = count;
    pending_.reset();
    const c10::InferenceMode inference;
    for (size_t b = 0; b < growth_.size(); ++b) {
      scale_on_gpus_.blocks()[b].fill_(scale_);
      growth_[b].fill_(finite_steps_);
    }
  }

 protected:
  void take_gradients(const std::vector<DTensor>& gradients,
                      const std::vector<Variable>& variables) override {
    if (goes_on_gpus(gradients[0])) return step_on_gpus(gradients, variables);
    if (!all_finite(gradients)) {
      finite_steps_ = 0;
      scale_ /= 2;
      return;
    }
    apply_reduced(*inner_, scaled(gradients, 1 / static_cast<double>(scale_)), variables);
    if (is_abstract() || ++finite_steps_ < options_.dynamic_growth_steps) return;
    finite_steps_ = 0;
    if (std::isfinite(scale_ * 2)) scale_ *= 2;
  }

 private:
  /// Returns the scale as an input of its step, so that a replay multiplies by the current scale.
  DTensor scale_input(const DTensor& loss) const {
    // A step of a pipeline on GPUs is planned, and waits for them here.
    const auto host = [this, dtype = loss.dtype()](int64_t) {
      return at::scalar_tensor(scale(), at::TensorOptions().dtype(dtype));
    };
    const TracerScope untraced(nullptr);
    const DTensor input = host_input(host(steps()), loss.mesh());
    if (OpListener* const listener = untraced.previous()) listener->input(input, steps(), host);
    return input;
  }

  static bool goes_on_gpus(const DTensor& value) {
    return !is_abstract() && on_gpus(value.mesh().root());
  }

  /// Returns the scale on the mesh's GPUs, where each step updates it: on those of all stages, if
  /// the mesh is that of one.
  const DTensor& scale_on_gpus(const Mesh& of) const {
    const Mesh mesh = of.root();
    if (scale_on_gpus_.defined() && scale_on_gpus_.mesh() == mesh) return scale_on_gpus_;
    const ShardingPtr sharding = intern({}, at::kFloat, Layout::replicated(mesh, 0));
    Blocks blocks;
    growth_.clear();
    for (const BlockInfo& block : sharding->blocks) {
      const at::TensorOptions options = block_options(*sharding, block);
      blocks.push_back(at::full({}, scale_, options));
      growth_.push_back(at::full({}, finite_steps_, options.dtype(at::kInt)));
    }
    scale_on_gpus_ = DTensor(sharding, std::move(blocks));
    return scale_on_gpus_;
  }

  /// Runs a step without waiting for the GPUs: the inner optimizer changes nothing if a gradient is
  /// not finite. The next step reads whether that was so, before it uses rates and step counts.
  void step_on_gpus(const std::vector<DTensor>& gradients, const std::vector<Variable>& variables) {
    const Blocks& scales = scale_on_gpus(gradients[0].mesh()).blocks();
    const ScalarOnDevices found_inf = non_finite_on_gpus(gradients, scales);
    ScalarOnDevices factors;
    for (const at::Tensor& scale : scales) factors[scale.device()] = scale.reciprocal();
    revert_skipped_step();
    std::vector<std::pair<OptimizerHandle, int64_t>> steps = {{inner_, inner_->steps()}};
    for (const OptimizerHandle& each : inner_->inner()) steps.emplace_back(each, each->steps());
    apply_unless_skipped(found_inf, *inner_, scaled(gradients, factors), variables);
    for (size_t b = 0; b < scales.size(); ++b) {
      at::Tensor scale = scales[b];
      at::_amp_update_scale_(scale, growth_[b], found_inf.at(scale.device()), 2, 0.5,
                             options_.dynamic_growth_steps);
    }
    pending_.emplace(PendingStep{Download(found_inf.at(scales[0].device())), std::move(steps)});
  }

  /// Restores the inner step counts if the last step was skipped.
  void revert_skipped_step() const {
    if (pending_ && pending_->skipped.get().item<float>() != 0) {
      for (const auto& [optimizer, steps] : pending_->steps) optimizer->set_steps(steps);
    }
    pending_.reset();
  }

  /// Waits for the GPUs and reads their scale and step counts.
  void finish_pending_step() const {
    if (!pending_) return;
    revert_skipped_step();
    scale_ = scale_on_gpus_.blocks()[0].item<float>();
    finite_steps_ = growth_[0].item<int>();
  }

  /// The pending result of the last step on GPUs.
  struct PendingStep {
    Download skipped;
    std::vector<std::pair<OptimizerHandle, int64_t>> steps;  ///< inner step counts before the step
  };

  OptimizerHandle inner_;
  LossScaleOptimizerOptions options_;
  mutable float scale_;
  mutable int64_t finite_steps_ = 0;  ///< finite steps since the scale last changed
  mutable DTensor scale_on_gpus_;
  mutable std::vector<at::Tensor> growth_;  ///< finite_steps_, for each block of the scale
  mutable std::optional<PendingStep> pending_;
};

const Registered registered_loss_scale(
    wrapping_optimizer_factories(), {loss_scale_name}, [](JsonObject& config) {
      const auto inner = config.take<Json>("inner_optimizer");
      const std::string where = config.path().key("inner_optimizer").text();
      auto options = options_from<LossScaleOptimizerOptions>(config);
      read_option(config, "name", options.name);
      return LossScaleOptimizer(optimizer_from_config(inner, where), options);
    });

const bool registered_scaler = [] {
  loss_scaler() = [](const OptimizerHandle& inner) -> OptimizerHandle {
    return LossScaleOptimizer(inner, {.name = "loss_scale_optimizer"});
  };
  return true;
}();

}  // namespace

LossScaleOptimizer::LossScaleOptimizer(OptimizerHandle inner_optimizer,
                                       LossScaleOptimizerOptions options)
    : OptimizerHandle(std::make_shared<LossScaling>(std::move(inner_optimizer), options)) {}

OptimizerHandle LossScaleOptimizer::inner_optimizer() const { return get()->inner()[0]; }

double LossScaleOptimizer::dynamic_scale() const {
  return static_cast<const LossScaling&>(*get()).scale();
}

}  // namespace tessera
