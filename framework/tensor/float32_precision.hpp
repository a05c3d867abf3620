#pragma once

#include <string>

namespace tessera {

/// How exactly products of float32 are made, matrices' and convolutions' alike
/// (torch.set_float32_matmul_precision, jax_default_matmul_precision): "highest" as float32; "high"
/// and "medium" on GPUs as TF32, which keeps ten bits of each factor and is several times as fast.
/// On CPUs that have coarser products "high" and "medium" allow them as they do in PyTorch. Until
/// it is called "highest", on GPUs for convolutions too. For the whole process, set between steps.
/// Throws ConfigError for another text.
void set_float32_matmul_precision(const std::string& precision);

namespace detail {

/// What set_float32_matmul_precision() says.
std::string float32_matmul_precision();

/// Tells ATen, whose own default is TF32 for convolutions; before the first GPU is used.
void apply_float32_precision();

}  // namespace detail

}  // namespace tessera
