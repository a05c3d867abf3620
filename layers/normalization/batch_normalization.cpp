#include <tessera/layers/normalization/batch_normalization.hpp>

#include <cmath>
#include <limits>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/normalize.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/normalized_axes.hpp>

namespace tessera {

using namespace detail;

/// Writes the limits that are set as Keras' dict; null without any.
Json option_json(const RenormClipping& clipping) {
  Json json = Json::object();
  if (clipping.rmin) json["rmin"] = *clipping.rmin;
  if (clipping.rmax) json["rmax"] = *clipping.rmax;
  if (clipping.dmax) json["dmax"] = *clipping.dmax;
  return json.empty() ? Json(nullptr) : json;
}

void read_option(JsonObject& config, const std::string& key, RenormClipping& clipping) {
  if (!config.take_optional<Json>(key)) return;
  JsonObject limits = config.take_object(key);
  clipping = {.rmin = limits.take_optional<double>("rmin"),
              .rmax = limits.take_optional<double>("rmax"),
              .dmax = limits.take_optional<double>("dmax")};
  limits.finish();
}

template <class Visit>
void fields(BatchNormalizationOptions& o, const Visit& visit) {
  visit("axis", o.axis);
  visit("momentum", o.momentum);
  visit("epsilon", o.epsilon);
  visit("center", o.center);
  visit("scale", o.scale);
  visit("beta_initializer", o.beta_initializer);
  visit("gamma_initializer", o.gamma_initializer);
  visit("moving_mean_initializer", o.moving_mean_initializer);
  visit("moving_variance_initializer", o.moving_variance_initializer);
  visit("beta_regularizer", o.beta_regularizer);
  visit("gamma_regularizer", o.gamma_regularizer);
  visit("beta_constraint", o.beta_constraint);
  visit("gamma_constraint", o.gamma_constraint);
  visit("renorm", o.renorm);
  visit("renorm_clipping", o.renorm_clipping);
  visit("renorm_momentum", o.renorm_momentum);
  visit("synchronized", o.synchronized);
}

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Draws the square roots of another initializer's values.
class RootInitializer final : public Initializer {
 public:
  explicit RootInitializer(InitializerHandle squares) : squares_(std::move(squares)) {}
  std::string class_name() const override { return "Root"; }
  DTensor draw(const Shape& shape, at::ScalarType dtype, Seed seed) const override {
    return ops::sqrt(squares_->draw(shape, dtype, seed));
  }

 private:
  InitializerHandle squares_;
};

ops::Axes axes_but(int64_t axis, int64_t rank) {
  ops::Axes axes;
  for (int64_t a = 0; a < rank; ++a) {
    if (a != axis) axes.push_back(a);
  }
  return axes;
}

/// Returns the mean over all axes but `axis`, which keep extent 1; over unmasked elements only if
/// `steps` is defined (Keras' masked moments).
DTensor mean_of_each(const DTensor& x, int64_t axis, const DTensor& steps) {
  const ops::Axes reduced = axes_but(axis, x.rank());
  // An empty list would reduce all axes.
  if (reduced.empty()) return x;
  if (!steps.defined()) return ops::mean(x, reduced, true);
  constexpr double epsilon = 1e-7;
  const DTensor left = ops::where(steps, x, scalar(0, x.mesh(), x.dtype()));
  const DTensor counts = ops::cast(ops::broadcast_to(steps, x.shape()), x.dtype());
  return ops::sum(left, reduced, true) / (ops::sum(counts, reduced, true) + epsilon);
}

/// Returns the mask of x with an axis for the features; undefined without a mask.
DTensor steps_of(const DTensor& x, const std::string& where) {
  const DTensor mask = x.mask();
  if (!mask.defined()) return mask;
  if (mask.rank() == x.rank() - 1) return ops::expand_dims(mask, -1);
  throw ShapeError(where, "a mask has the axes of the input except the last",
                   to_string(mask.shape()) + " for " + to_string(x.shape()),
                   "mask steps, not features");
}

void check_clipping(const std::string& where, const RenormClipping& clipping) {
  const auto& [rmin, rmax, dmax] = clipping;
  if (dmax.value_or(0) >= 0 && !(rmin && rmax && *rmax < *rmin)) return;
  const auto text = [](const std::optional<double>& limit) { return limit ? str(*limit) : "none"; };
  throw ConfigError(where, "renorm_clipping has rmin <= rmax and dmax >= 0",
                    "rmin " + text(rmin) + ", rmax " + text(rmax) + ", dmax " + text(dmax),
                    "leave out limits that do not apply");
}

class BatchNormalizationLayer final
    : public LayerOf<BatchNormalizationLayer, BatchNormalizationOptions> {
 public:
  static constexpr const char* keras_name = "BatchNormalization";
  explicit BatchNormalizationLayer(const BatchNormalizationOptions& options);
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }
  void place_weights(const LayoutMap& layouts) override;

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  /// Normalizes by the batch's moments, or by the moving ones, in one operation.
  DTensor fused(const DTensor& x, const Shape& features, const ops::Axes& reduced, bool learns);
  /// Normalizes by moments of unmasked elements, with renorm, over another axis than the last, or
  /// on GPUs.
  DTensor composed(const DTensor& x, const Shape& features, const DTensor& steps, bool learns);
  /// Advances a moving statistic by one step and returns its new value.
  DTensor advance(Variable& moving, const DTensor& moment, double momentum) const;
  void advance_moments(const DTensor& mean, const DTensor& variance);
  /// Returns r and d of batch renormalization and advances its statistics by one step.
  std::pair<DTensor, DTensor> renormalize(const DTensor& mean, const DTensor& variance);

  Variable gamma_, beta_, moving_mean_, moving_variance_;
  Variable moving_stddev_, renorm_mean_, renorm_stddev_;  ///< with `renorm`
};

const RegisteredLayerOf<BatchNormalizationLayer> registered_batch_normalization;

BatchNormalizationLayer::BatchNormalizationLayer(const BatchNormalizationOptions& options)
    : LayerOf(options) {
  check_clipping(where(), options.renorm_clipping);
  for (const auto& [weight, layout] : {std::pair("gamma", &arguments_.gamma_layout),
                                       {"beta", &arguments_.beta_layout},
                                       {"moving_mean", &arguments_.moving_mean_layout},
                                       {"moving_variance", &arguments_.moving_variance_layout}}) {
    if (!layout->empty()) set_weight_layout(weight, *layout);
  }
}

Shape BatchNormalizationLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  const auto rank = static_cast<int64_t>(input.size());
  const auto axis = static_cast<size_t>(normalize_axis(arguments_.axis, rank, where()));
  if (input[axis] < 0) {
    throw ShapeError(where(), str("axis ", axis, " has a known extent"), to_string(input),
                     "normalize over it, or give its extent");
  }
  if (!built()) return input;
  if (input.size() != built_for()[0].size()) {
    throw ShapeError(where(), str("the input has ", built_for()[0].size(), " axes, as when built"),
                     to_string(input), "pass inputs of that rank");
  }
  if (input[axis] != moving_mean_.shape()[0]) {
    throw ShapeError(
        where(), str("axis ", axis, " has ", moving_mean_.shape()[0], " indices, as when built"),
        to_string(input), "pass inputs of that size");
  }
  return input;
}

void BatchNormalizationLayer::make_weights(const Shapes& inputs) {
  const Shape& input = inputs[0];
  const auto rank = static_cast<int64_t>(input.size());
  const Shape shape = {input[static_cast<size_t>(normalize_axis(arguments_.axis, rank, path()))]};
  const auto add = [this](auto&&... weight) { return add_weight(weight...); };
  add_affine(arguments_, shape, add, gamma_, beta_);
  const WeightOptions moving = {.trainable = false};
  moving_mean_ = add_weight("moving_mean", shape, arguments_.moving_mean_initializer, moving);
  moving_variance_ =
      add_weight("moving_variance", shape, arguments_.moving_variance_initializer, moving);
  if (!arguments_.renorm) return;
  const InitializerHandle root(
      std::make_shared<RootInitializer>(arguments_.moving_variance_initializer));
  moving_stddev_ = add_weight("moving_stddev", shape, root, moving);
  renorm_mean_ = add_weight("renorm_mean", shape, arguments_.moving_mean_initializer, moving);
  renorm_stddev_ = add_weight("renorm_stddev", shape, root, moving);
}

void BatchNormalizationLayer::place_weights(const LayoutMap& layouts) {
  Layer::place_weights(layouts);
  const Variable& first = gamma_.defined() ? gamma_ : beta_;
  if (!first.defined()) return;
  const Layout used = first.placement().use.value_or(first.layout());
  const auto deduce = [&](Variable& weight, const LayoutSpec& requested) {
    if (!weight.defined() || !requested.empty() || weight.placement().rule >= 0) return;
    weight.place({weight.shape(), used});
  };
  if (!first.is(beta_)) deduce(beta_, arguments_.beta_layout);
  deduce(moving_mean_, arguments_.moving_mean_layout);
  deduce(moving_variance_, arguments_.moving_variance_layout);
  for (Variable* weight : {&moving_stddev_, &renorm_mean_, &renorm_stddev_}) deduce(*weight, {});
}

DTensor BatchNormalizationLayer::advance(Variable& moving, const DTensor& moment,
                                         double momentum) const {
  const DTensor scaled_moment = ops::reshape(moment, moving.shape()) * (1 - momentum);
  const DTensor updated = moving.read(moment.dtype()) * momentum + scaled_moment;
  moving.assign_in_call(updated);
  return updated;
}

void BatchNormalizationLayer::advance_moments(const DTensor& mean, const DTensor& variance) {
  const NoRecording no_tape;
  advance(moving_mean_, mean, arguments_.momentum);
  advance(moving_variance_, variance, arguments_.momentum);
}

std::pair<DTensor, DTensor> BatchNormalizationLayer::renormalize(const DTensor& mean,
                                                                 const DTensor& variance) {
  const NoRecording no_tape;
  const DTensor stddev = ops::sqrt(variance + arguments_.epsilon);
  const auto read = [&](const Variable& variable) {
    return ops::reshape(variable.read(mean.dtype()), mean.shape());
  };
  // Early in training, renorm_stddev may be nearly 0.
  const DTensor known = ops::clip(read(renorm_stddev_), std::sqrt(arguments_.epsilon), infinity);
  const auto& [rmin, rmax, dmax] = arguments_.renorm_clipping;
  const double max_offset = dmax.value_or(infinity);
  const DTensor r = ops::clip(stddev / known, rmin.value_or(-infinity), rmax.value_or(infinity));
  const DTensor d = ops::clip((mean - read(renorm_mean_)) / known, -max_offset, max_offset);
  advance(renorm_mean_, mean, arguments_.renorm_momentum);
  advance(renorm_stddev_, stddev, arguments_.renorm_momentum);
  advance(moving_mean_, mean, arguments_.momentum);
  const DTensor moved = advance(moving_stddev_, stddev, arguments_.momentum);
  moving_variance_.assign_in_call(ops::relu(ops::square(moved) - arguments_.epsilon));
  return {r, d};
}

DTensor BatchNormalizationLayer::fused(const DTensor& x, const Shape& features,
                                       const ops::Axes& reduced, bool learns) {
  const auto weight = [&](const Variable& variable, at::ScalarType dtype) {
    return variable.defined() ? ops::reshape(read(variable, dtype), features) : DTensor();
  };
  const DTensor moments =
      learns
          ? norm_moments(x, features, reduced)
          : ops::stack({weight(moving_mean_, at::kDouble), weight(moving_variance_, at::kDouble)});
  if (learns) {
    const NoRecording no_tape;
    const std::vector<DTensor> each = ops::unstack(moments);
    advance_moments(each[0], each[1]);
  }
  const at::ScalarType dtype = at::promote_types(x.dtype(), at::kFloat);
  return norm_by(x, moments, weight(gamma_, dtype), weight(beta_, dtype), features, reduced,
                 {.epsilon = arguments_.epsilon, .own_moments = learns});
}

DTensor BatchNormalizationLayer::composed(const DTensor& narrow, const Shape& features,
                                          const DTensor& steps, bool learns) {
  // Sums in float16 and bfloat16 overflow or lose precision.
  const at::ScalarType dtype = at::promote_types(narrow.dtype(), at::kFloat);
  const DTensor x = ops::cast(narrow, dtype);
  const int64_t axis = normalize_axis(arguments_.axis, x.rank(), path());
  const auto weight = [&](const Variable& variable) {
    return ops::reshape(read(variable, dtype), features);
  };
  const DTensor mean = learns ? mean_of_each(x, axis, steps) : weight(moving_mean_);
  const DTensor centered = x - mean;
  const DTensor variance =
      learns ? mean_of_each(ops::square(centered), axis, steps) : weight(moving_variance_);
  // This resolves the variance's partial sum, like the subtraction did the mean's; the moving
  // statistics reuse the results.
  DTensor factor = ops::rsqrt(variance + arguments_.epsilon);
  DTensor offset;
  if (learns && arguments_.renorm) {
    const auto [r, d] = renormalize(mean, variance);
    factor = factor * r;
    offset = d;
  } else if (learns) {
    advance_moments(mean, variance);
  }
  if (gamma_.defined()) {
    const DTensor gamma = weight(gamma_);
    factor = factor * gamma;
    if (offset.defined()) offset = offset * gamma;
  }
  if (beta_.defined()) offset = offset.defined() ? offset + weight(beta_) : weight(beta_);
  const DTensor y = centered * factor;
  return offset.defined() ? y + offset : y;
}

DTensor BatchNormalizationLayer::call(const Inputs& inputs, const CallContext& context) {
  const DTensor& x = inputs[0];
  const int64_t axis = normalize_axis(arguments_.axis, x.rank(), path());
  const ops::Axes reduced = axes_but(axis, x.rank());
  Shape features(x.shape().size(), 1);
  features[static_cast<size_t>(axis)] = x.size(axis);
  const bool learns = context.training && trainable() && x.numel() > 0;
  const DTensor steps = steps_of(x, where());
  const bool plain = !learns || !(steps.defined() || arguments_.renorm);
  const DTensor y = plain && can_normalize(x, features, reduced)
                        ? fused(x, features, reduced, learns)
                        : composed(x, features, steps, learns);
  return ops::cast(y, dtype_policy().compute);
}

}  // namespace

BatchNormalization::BatchNormalization(const BatchNormalizationOptions& options)
    : LayerHandle(make_layer<BatchNormalizationLayer>(options)) {}

}  // namespace tessera
