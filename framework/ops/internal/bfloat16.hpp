#pragma once

#include <ATen/core/Tensor.h>

#include <bit>
#include <cstdint>
#include <type_traits>

namespace tessera::detail {

/// Whether the processor has instructions that multiply bfloat16 and add up in float32 (AVX-512
/// BF16; those with AMX have both). oneDNN, which ATen calls, detects and uses them; elsewhere its
/// products of bfloat16 take longer than those of float32.
inline bool multiplies_bfloat16() {
#if defined(__x86_64__)
  static const bool has_it = __builtin_cpu_supports("avx512bf16");
  return has_it;
#else
  return false;
#endif
}

/// Whether oneDNN's functions of this dtype are faster than what else computes it: float32, and
/// bfloat16 if the processor multiplies_bfloat16().
inline bool is_fast_in_onednn(at::ScalarType dtype) {
  return dtype == at::kFloat || (dtype == at::kBFloat16 && multiplies_bfloat16());
}

/// A bfloat16 in loops that are vectorized(): a number to the compiler, which does not vectorize
/// copies of c10::BFloat16, a class.
enum class Bfloat16 : uint16_t {};

/// Returns an element of a block as a loop computes with it: a bfloat16 as float.
template <class T, class E>
[[gnu::always_inline]] inline T widened(E x) {
  if constexpr (std::is_same_v<E, Bfloat16>) {
    return std::bit_cast<float>(static_cast<uint32_t>(x) << 16);
  } else {
    return x;
  }
}

/// Returns a result as an element of a block: a bfloat16 is rounded, to even.
template <class E, class T>
[[gnu::always_inline]] inline E rounded(T x) {
  if constexpr (std::is_same_v<E, Bfloat16>) {
    constexpr uint32_t infinity = 0x7f800000, nan = 0x7fc0, size = 0x7fffffff;
    const auto exact = std::bit_cast<uint32_t>(x);
    const uint32_t nearest = (exact + 0x7fff + (exact >> 16 & 1)) >> 16;
    return Bfloat16((exact & size) > infinity ? nan : nearest);
  } else {
    return x;
  }
}

/// Returns the elements of a tensor on a CPU, of E or, for Bfloat16, of c10::BFloat16.
template <class E>
E* elements_of(const at::Tensor& x) {
  if constexpr (std::is_same_v<E, Bfloat16>) {
    return reinterpret_cast<E*>(x.data_ptr<c10::BFloat16>());
  } else {
    return x.data_ptr<E>();
  }
}

}  // namespace tessera::detail
