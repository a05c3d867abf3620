#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/core/einsum_dense.hpp>

namespace tessera::detail {

/// Letters of einsum from the `first` on.
std::string letters_from(int64_t first, int64_t count);

/// Options of a layer of attention that say what steps attend to, and what it gives.
struct StepOptions {
  bool causal, scores;
  std::optional<int64_t> window;
};

/// What the steps of a call attend to.
struct AttendedSteps {
  DTensor key, value;
  std::vector<DTensor> masks = {};  ///< of call_masks()
  bool causal = false;              ///< all steps are there, and attend to earlier ones alone
  std::optional<int64_t> window = {};
};

/// What steps attend to that have these keys and values: with a cache in the context, and if
/// causal, those of the calls before it too, and then `masks` say what is causal or in the window.
/// `inputs` are the layer's, `options` those of its attention. Throws ConfigError for keys of
/// another rank than (batch, steps, heads, dim), and if scores are asked for.
AttendedSteps attended_steps(const Layer& layer, const CallContext& context, const Inputs& inputs,
                             const DTensor& key, const DTensor& value, const StepOptions& options);

/// The masks of a call on query, value, maybe key and attention_mask: bool, broadcast to (batch, T,
/// S); those of the inputs have an extent of 1 along what they do not know.
std::vector<DTensor> call_masks(const Inputs& inputs);

/// What all masks leave; undefined: everything.
DTensor joined_masks(const std::vector<DTensor>& masks);

/// What T steps, the first of which is that number `first` of S, may attend to of these by their
/// places, bool (1, T, S); undefined: anything.
DTensor place_mask(int64_t t, int64_t s, bool causal, const std::optional<int64_t>& window,
                   const Mesh& mesh, int64_t first = 0);

/// A mask with axes of extent 1 before the last `kept`, up to a rank.
DTensor widened_mask(const DTensor& mask, int64_t kept, int64_t rank);

/// Whether ops::attention moves no more than the scores would, which nobody asks for: query and
/// key (batch, …, heads, features) of whole features, and steps of the key that are whole or cut as
/// the query's, along that axis.
bool attends_at_once(const DTensor& query, const DTensor& key, int64_t steps);

/// Softmax of scores over their last `attended` axes, of those that the mask leaves, if there is
/// one: in float32 at least, and 0 where it leaves nothing if `zeros`, else all alike.
DTensor attention_shares(const DTensor& scores, const DTensor& mask, int64_t attended, bool zeros);

/// A projection of an axis or two, the last of (free…, bound…), to `output`, by a layer of that
/// name: to heads and features, or back.
template <class Options>
LayerHandle head_projection(const Options& o, const std::string& name, int64_t rank, int64_t bound,
                            const Shape& output, const std::string& dtype) {
  const int64_t free = rank - bound;
  const auto width = static_cast<int64_t>(output.size());
  const std::string kept = letters_from(0, free), summed = letters_from(free, bound);
  const std::string made = letters_from(rank, width);
  Shape shape(static_cast<size_t>(free - 1), -1);
  shape.insert(shape.end(), output.begin(), output.end());
  return EinsumDense(kept + summed + "," + summed + made + "->" + kept + made, shape,
                     {.activation = name == "gate" ? "sigmoid" : "linear",
                      .bias_axes = o.use_bias ? made : "",
                      .kernel_initializer = o.kernel_initializer,
                      .bias_initializer = o.bias_initializer,
                      .kernel_regularizer = o.kernel_regularizer,
                      .bias_regularizer = o.bias_regularizer,
                      .activity_regularizer = o.activity_regularizer,
                      .kernel_constraint = o.kernel_constraint,
                      .bias_constraint = o.bias_constraint,
                      .name = name,
                      .dtype = dtype});
}

}  // namespace tessera::detail
