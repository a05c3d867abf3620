#pragma once

#include <vector>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The axes of a layer that normalizes over them, from 0 on and in order. Throws ShapeError naming
/// `where` if one is missing, comes twice or has no known extent.
std::vector<int64_t> normalized_axes(const std::string& where, const std::vector<int64_t>& axes,
                                     const Shape& input);

/// The extents of those axes, 1 for the others.
Shape kept_extents(const Shape& input, const std::vector<int64_t>& axes);
/// The extents of those axes alone.
Shape extents_of(const Shape& input, const std::vector<int64_t>& axes);

/// Throws ShapeError naming `where` unless the axes have the extents of the weights.
void check_as_built(const std::string& where, const Shape& extents, const Shape& built);

/// Weights "gamma" and "beta" of a shape, as far as the options ask for them; `add` is the layer's
/// add_weight().
template <class Options, class Add>
void add_affine(const Options& options, const Shape& shape, const Add& add, Variable& gamma,
                Variable& beta) {
  if (options.scale) {
    gamma = add("gamma", shape, options.gamma_initializer,
                WeightOptions{.regularizer = options.gamma_regularizer,
                              .constraint = options.gamma_constraint});
  }
  if (options.center) {
    beta = add("beta", shape, options.beta_initializer,
               WeightOptions{.regularizer = options.beta_regularizer,
                             .constraint = options.beta_constraint});
  }
}

/// What the options of layers with gamma and beta have in common, as Keras writes it.
template <class Options>
void put_affine(Json& json, const Options& options) {
  json["epsilon"] = options.epsilon;
  json["center"] = options.center;
  json["scale"] = options.scale;
  json["beta_initializer"] = serialized(options.beta_initializer);
  json["gamma_initializer"] = serialized(options.gamma_initializer);
  json["beta_regularizer"] = serialized(options.beta_regularizer);
  json["gamma_regularizer"] = serialized(options.gamma_regularizer);
  json["beta_constraint"] = serialized(options.beta_constraint);
  json["gamma_constraint"] = serialized(options.gamma_constraint);
}

/// Takes it from there.
template <class Options>
void take_affine(JsonObject& config, Options& options) {
  options.epsilon = config.take_or("epsilon", options.epsilon);
  options.center = config.take_or("center", options.center);
  options.scale = config.take_or("scale", options.scale);
  options.beta_initializer = config.take_or("beta_initializer", options.beta_initializer);
  options.gamma_initializer = config.take_or("gamma_initializer", options.gamma_initializer);
  options.beta_regularizer = config.take_or("beta_regularizer", options.beta_regularizer);
  options.gamma_regularizer = config.take_or("gamma_regularizer", options.gamma_regularizer);
  options.beta_constraint = config.take_or("beta_constraint", options.beta_constraint);
  options.gamma_constraint = config.take_or("gamma_constraint", options.gamma_constraint);
}

}  // namespace tessera
