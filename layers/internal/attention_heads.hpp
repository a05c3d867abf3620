#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/core/einsum_dense.hpp>

namespace tessera::detail {

/// Returns `count` einsum letters, from number `first` on ("abc" for 0, 3).
std::string letters_from(int64_t first, int64_t count);

/// Options of an attention layer that attended_steps() needs.
struct StepOptions {
  bool causal, scores;
  std::optional<int64_t> window;
};

/// The keys, values and masks that the steps of a call attend to.
struct AttendedSteps {
  DTensor key, value;
  std::vector<DTensor> masks = {};  ///< see call_masks()
  bool causal = false;  ///< whether to apply a causal mask: query and key have the same steps
  std::optional<int64_t> window = {};
};

/// Returns what the steps of a call attend to, given its projected keys and values. If the context
/// has a cache and `causal` is set, cached keys and values come first, and `masks` include
/// causality and window. `inputs` are the layer's. With a cache, throws ConfigError for keys other
/// than (batch, steps, heads, dim) and if scores are requested.
AttendedSteps attended_steps(const Layer& layer, const CallContext& context, const Inputs& inputs,
                             const DTensor& key, const DTensor& value, const StepOptions& options);

/// Returns the axes of an input's own mask as axes of the scores, with extent 1 along the others.
using MaskPlacer = std::function<DTensor(size_t input, const DTensor& mask)>;

/// Returns the masks of a call on query, value, optionally key and attention_mask: bool, each
/// broadcastable to (batch, T, S), or as `place` makes them. By default, the inputs' own masks have
/// extent 1 along the other's steps.
std::vector<DTensor> call_masks(const Inputs& inputs, const MaskPlacer& place = {});

/// Returns the causal and window mask of T query steps over S key steps, bool (1, T, S); undefined
/// if it excludes nothing. The first query step is step `first` of S.
DTensor position_mask(int64_t t, int64_t s, bool causal, const std::optional<int64_t>& window,
                      const Mesh& mesh, int64_t first = 0);

/// Inserts axes of extent 1 before the last `trailing` axes of a mask, up to a rank.
DTensor expanded_mask(const DTensor& mask, int64_t trailing, int64_t rank);

/// Returns whether ops::attention moves no more data than computing the scores would. `query` and
/// `key` are (batch, …, heads, features): features must be replicated, and the key's axis `steps`
/// replicated or sharded like the query's. Callers must not need the scores.
bool can_use_fused_attention(const DTensor& query, const DTensor& key, int64_t steps);

/// Returns the softmax of scores over their last `attended` axes, computed in at least float32,
/// where all of the masks that are defined allow it. Steps with everything masked give zeros.
DTensor masked_softmax(const DTensor& scores, const std::vector<DTensor>& masks, int64_t attended);

/// Makes an EinsumDense layer that projects the last `bound` axes of an input (free…, bound…) to
/// the axes `output`: to heads and features, or back.
template <class Options>
LayerHandle head_projection(const Options& o, const std::string& name, int64_t rank, int64_t bound,
                            const Shape& output, const std::string& dtype) {
  const int64_t free = rank - bound;
  const auto width = static_cast<int64_t>(output.size());
  const std::string free_letters = letters_from(0, free), bound_letters = letters_from(free, bound);
  const std::string output_letters = letters_from(rank, width);
  Shape shape(static_cast<size_t>(free - 1), -1);
  shape.insert(shape.end(), output.begin(), output.end());
  return EinsumDense(free_letters + bound_letters + "," + bound_letters + output_letters + "->" +
                         free_letters + output_letters,
                     shape,
                     {.activation = name == "gate" ? "sigmoid" : "linear",
                      .bias_axes = o.use_bias ? output_letters : "",
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
