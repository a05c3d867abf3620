#pragma once

#include <string>

namespace tessera {

/// Sets the precision of float32 matmuls and convolutions (torch.set_float32_matmul_precision,
/// jax_default_matmul_precision): "highest" (default) computes in float32; "high" and "medium" use
/// TF32 on GPUs, which keeps ten mantissa bits of each factor and is several times as fast. On CPUs
/// with lower-precision matmuls "high" and "medium" allow these as in PyTorch. Process-wide; call
/// it between steps. Throws ConfigError for another text.
void set_float32_matmul_precision(const std::string& precision);

namespace detail {

/// Returns the precision that set_float32_matmul_precision() set.
std::string float32_matmul_precision();

/// Passes the precision on to ATen, whose own default is TF32 for convolutions. To be called before
/// the first GPU is used.
void apply_float32_precision();

}  // namespace detail

}  // namespace tessera
