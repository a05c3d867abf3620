// Checks indices on a GPU without waiting: records the position of the first index out of range,
// and clamps all of them, so that kernels that read them stay within their memory.
#pragma once

#include <tessera/framework/ops/internal/device_code.hpp>

namespace tessera::detail::kernels {

struct IndexParameters {
  const long long* in;
  long long* out;
  long long least;  ///< indices must be in [least, count)
  long long count;
  long long* first_invalid;  ///< lowest position of an index out of range
};

TESSERA_DEVICE void check_index(const IndexParameters& p, unsigned long long position) {
  const long long index = p.in[position];
  const long long inside = index < p.least ? p.least : index >= p.count ? p.count - 1 : index;
  p.out[position] = inside;
  if (inside == index) return;
  const auto here = static_cast<long long>(position);
#ifdef __CUDACC_RTC__
  atomicMin(p.first_invalid, here);
#else
  if (here < *p.first_invalid) *p.first_invalid = here;
#endif
}

TESSERA_KERNEL(index_kernel, check_index, IndexParameters)

}  // namespace tessera::detail::kernels
