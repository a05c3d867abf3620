#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Returns the axes that a layer normalizes over, nonnegative and in ascending order. Throws
/// ShapeError naming `where` if one is out of range, repeated or of unknown extent.
std::vector<int64_t> normalized_axes(const std::string& where, const std::vector<int64_t>& axes,
                                     const Shape& input);

/// Returns the input's shape with extent 1 for all axes but `axes`.
Shape broadcastable_shape(const Shape& input, const std::vector<int64_t>& axes);
/// Returns the extents of `axes`.
Shape extents_of(const Shape& input, const std::vector<int64_t>& axes);

/// Throws ShapeError naming `where` unless the axes have the extents of the weights.
void check_as_built(const std::string& where, const Shape& extents, const Shape& built);

/// Adds the weights "gamma" and "beta" if the options ask for them; `add` is the layer's
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

/// Visits the options of layers with gamma and beta.
template <class Options, class Visit>
void affine_fields(Options& o, const Visit& visit) {
  visit("epsilon", o.epsilon);
  visit("center", o.center);
  visit("scale", o.scale);
  visit("beta_initializer", o.beta_initializer);
  visit("gamma_initializer", o.gamma_initializer);
  visit("beta_regularizer", o.beta_regularizer);
  visit("gamma_regularizer", o.gamma_regularizer);
  visit("beta_constraint", o.beta_constraint);
  visit("gamma_constraint", o.gamma_constraint);
}

}  // namespace tessera::detail
