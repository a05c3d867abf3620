// Lets g++ (for tests and the fake GPU) and NVRTC (which gets the source as text) compile the same
// kernel source. Kernel sources use only what both compilers know.
#pragma once

#ifdef __CUDACC_RTC__
#define TESSERA_DEVICE __device__ inline
/// Defines the GPU kernel `name`, which calls function(parameters, index) for each index < count.
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
