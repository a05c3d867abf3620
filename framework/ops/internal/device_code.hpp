// What makes one source of a kernel code for g++, for tests and imitated GPUs, and for NVRTC, which
// gets it as a text. In the source is nothing but what both know.
#pragma once

#ifdef __CUDACC_RTC__
#define TESSERA_DEVICE __device__ inline
/// The function `name` of GPUs: function(parameters, index) for each index below a count.
#define TESSERA_KERNEL(name, function, Parameters)                                   \
  extern "C" __global__ void name(Parameters parameters, unsigned long long count) { \
    const unsigned long long index =                                                 \
        static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;      \
    if (index < count) function(parameters, index);                                  \
  }
#else
#define TESSERA_DEVICE inline
#define TESSERA_KERNEL(name, function, Parameters)
#endif
