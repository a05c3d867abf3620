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
  long long* found;  ///< lowest position of an index out of range
};

TESSERA_DEVICE void check_index(const IndexParameters& p, unsigned long long place) {
  const long long index = p.in[place];
  const long long inside = index < p.least ? p.least : index >= p.count ? p.count - 1 : index;
  p.out[place] = inside;
  if (inside == index) return;
  const auto here = static_cast<long long>(place);
#ifdef __CUDACC_RTC__
  atomicMin(p.found, here);
#else
  if (here < *p.found) *p.found = here;
#endif
}

TESSERA_KERNEL(index_kernel, check_index, IndexParameters)

}  // namespace tessera::detail::kernels
