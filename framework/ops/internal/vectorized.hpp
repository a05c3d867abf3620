#pragma once

#include <utility>

/// Marks a function that vectorized() runs: it is compiled into both of its callers.
#define TESSERA_VECTORIZED [[gnu::always_inline]] static inline

namespace tessera::detail {

#if defined(__x86_64__)
template <class Body, class... Args>
[[gnu::target("avx2")]] void run_with_avx2(Args... args) {
  Body::run(args...);
}
#if defined(__clang__)
#define TESSERA_AVX512 [[gnu::target("avx512f,avx512dq,avx512bw"), clang::min_vector_width(512)]]
#else
#define TESSERA_AVX512 [[gnu::target("avx512f,avx512dq,avx512bw,prefer-vector-width=512")]]
#endif
template <class Body, class... Args>
TESSERA_AVX512 void run_with_avx512(Args... args) {
  Body::run(args...);
}
#undef TESSERA_AVX512
#endif

/// Calls Body::run(args...), compiled for processors with AVX2 or AVX-512 where this is one,
/// without fused multiply-adds (-ffp-contract=off): these round differently, and differences that
/// are 0 would not be. `run` is a TESSERA_VECTORIZED function whose loops are marked with
/// `#pragma omp simd`.
template <class Body, class... Args>
void vectorized(Args... args) {
#if defined(__x86_64__)
  static const bool has_avx512 = __builtin_cpu_supports("avx512f") &&
                                 __builtin_cpu_supports("avx512dq") &&
                                 __builtin_cpu_supports("avx512bw");
  if (has_avx512) return run_with_avx512<Body>(args...);
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return run_with_avx2<Body>(args...);
#endif
  Body::run(args...);
}

}  // namespace tessera::detail
