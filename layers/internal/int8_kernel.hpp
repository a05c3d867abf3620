#pragma once

#include <functional>
#include <string>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

/// Layers whose kernel is int8, as Layer::quantize("int8") leaves them: Dense and EinsumDense.
namespace tessera::detail {

/// An int8 kernel, and the factors that made it one.
struct Int8Kernel {
  DTensor values, scale;
};

/// Quantizes the kernel of an einsum "x,kernel->output", with a scale for each of its elements that
/// the output has. The scale has an axis for each letter of the output, of extent 1 where the
/// kernel lacks it.
Int8Kernel int8_kernel(const std::string& equation, const DTensor& kernel);

/// Returns int8_kernel() of the floating kernel that `kernel` stands for, plus `delta`.
Int8Kernel int8_sum(const std::string& equation, const Int8Kernel& kernel, const DTensor& delta);

/// Computes an einsum "x,kernel->output" in integers, to which x is quantized with a scale for each
/// of its elements that the output has. The scales are divided out again. `place` is applied to the
/// sum of integers, which may be partial. Communication: an all-reduce of the maxima of |x| and one
/// of the sums, each if a summed axis is sharded.
DTensor int8_product(const std::string& equation, const DTensor& x, const Int8Kernel& kernel,
                     const std::function<DTensor(const DTensor&)>& place);

/// Keras' quantization_config, which says how a layer is quantized: must be absent, None or the
/// default of mode int8, and is not written. Visited in place of an option.
struct QuantizationConfigOption {};
inline Json option_json(const QuantizationConfigOption&) { return Json(Json::value_t::discarded); }
void read_option(JsonObject& config, const std::string& key, QuantizationConfigOption& option);

}  // namespace tessera::detail
