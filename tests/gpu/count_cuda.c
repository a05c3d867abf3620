// Counts a program's calls of the CUDA runtime: LD_PRELOAD=count_cuda.so COUNT_CUDA_OUT=FILE
// PROGRAM writes them to FILE as JSON when the program ends. It needs neither CUDA nor its headers.
//   cc -shared -fPIC -O2 -o count_cuda.so count_cuda.c -ldl
// It counts calls of the process's libcudart.so, such as ATen's; cuBLAS, cuDNN and NCCL contain a
// runtime of their own, whose calls it does not see.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

typedef int Status;  // cudaError_t
typedef struct {
  unsigned x, y, z;
} Dim3;  // dim3

enum { status_unknown = 999 };  // cudaErrorUnknown

// What is counted: functions, and asynchronous copies by direction and by the host's memory.
#define COUNTED(X)                                                                            \
  X(cudaStreamSynchronize) X(cudaEventSynchronize) X(cudaDeviceSynchronize)                   \
  X(cudaStreamWaitEvent) X(cudaEventQuery) X(cudaStreamQuery) X(cudaMemcpy) X(cudaMemcpyAsync) \
  X(cudaMemcpyPeerAsync) X(cudaMemsetAsync) X(cudaMalloc) X(cudaFree) X(cudaHostAlloc)        \
  X(cudaLaunchKernel) X(__cudaLaunchKernel) X(cudaLaunchKernelExC) X(cudaGraphLaunch)         \
  X(to_device_pinned) X(to_device_pageable) X(to_host_pinned) X(to_host_pageable)             \
  X(within_device)

#define INDEX(name) at_##name,
enum { COUNTED(INDEX) counted };
#define NAME(name) #name,
static const char* const names[] = {COUNTED(NAME)};

static atomic_long counts[counted];
static void* _Atomic functions[counted];

/// Returns the runtime's own function.
static void* find(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  // A runtime loaded by dlopen may not be in the global scope.
  const char* const runtimes[] = {"libcudart.so.13", "libcudart.so.12"};
  for (int i = 0; !found && i < 2; ++i) {
    void* runtime = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
    if (runtime) found = dlsym(runtime, name);
  }
  return found;
}

static void* counted_function(int index) {
  atomic_fetch_add_explicit(&counts[index], 1, memory_order_relaxed);
  void* function = atomic_load(&functions[index]);
  if (!function) {
    function = find(names[index]);
    atomic_store(&functions[index], function);
  }
  return function;
}

/// Counts a call and passes it on.
#define COUNT(name, parameters, arguments)                                \
  Status name parameters {                                                \
    Status(*function) parameters = counted_function(at_##name);           \
    return function ? function arguments : status_unknown;                \
  }

COUNT(cudaStreamSynchronize, (void* stream), (stream))
COUNT(cudaEventSynchronize, (void* event), (event))
COUNT(cudaDeviceSynchronize, (void), ())
COUNT(cudaStreamWaitEvent, (void* stream, void* event, unsigned flags), (stream, event, flags))
COUNT(cudaEventQuery, (void* event), (event))
COUNT(cudaStreamQuery, (void* stream), (stream))
COUNT(cudaMemcpy, (void* to, const void* from, size_t size, int kind), (to, from, size, kind))
COUNT(cudaMemcpyPeerAsync,
      (void* to, int to_device, const void* from, int from_device, size_t size, void* stream),
      (to, to_device, from, from_device, size, stream))
COUNT(cudaMemsetAsync, (void* to, int value, size_t size, void* stream), (to, value, size, stream))
COUNT(cudaMalloc, (void** memory, size_t size), (memory, size))
COUNT(cudaFree, (void* memory), (memory))
COUNT(cudaHostAlloc, (void** memory, size_t size, unsigned flags), (memory, size, flags))
COUNT(cudaLaunchKernel,
      (const void* kernel, Dim3 grid, Dim3 block, void** arguments, size_t shared, void* stream),
      (kernel, grid, block, arguments, shared, stream))
// What nvcc writes for kernel<<<...>>> since CUDA 13.
COUNT(__cudaLaunchKernel,
      (void* kernel, Dim3 grid, Dim3 block, void** arguments, size_t shared, void* stream),
      (kernel, grid, block, arguments, shared, stream))
COUNT(cudaLaunchKernelExC, (const void* config, const void* kernel, void** arguments),
      (config, kernel, arguments))
COUNT(cudaGraphLaunch, (void* graph, void* stream), (graph, stream))

/// Whether CUDA knows a host's address: copies from and to other memory go by way of a buffer.
static int is_pinned(const void* address) {
  static Status (*ask)(void*, const void*);
  // cudaPointerAttributes, whose first member is the kind of memory: 0 is the host's own.
  struct {
    int type;
    char rest[252];
  } attributes = {0, {0}};
  if (!ask) ask = (Status(*)(void*, const void*))find("cudaPointerGetAttributes");
  return ask && ask(&attributes, address) == 0 && attributes.type != 0;
}

Status cudaMemcpyAsync(void* to, const void* from, size_t size, int kind, void* stream) {
  int way = at_within_device;
  if (kind == 1) way = is_pinned(from) ? at_to_device_pinned : at_to_device_pageable;
  if (kind == 2) way = is_pinned(to) ? at_to_host_pinned : at_to_host_pageable;
  atomic_fetch_add_explicit(&counts[way], 1, memory_order_relaxed);
  Status (*function)(void*, const void*, size_t, int, void*) =
      counted_function(at_cudaMemcpyAsync);
  return function ? function(to, from, size, kind, stream) : status_unknown;
}

/// The last of several processes to end is the one that started the others.
__attribute__((destructor)) static void report(void) {
  const char* path = getenv("COUNT_CUDA_OUT");
  FILE* file = path ? fopen(path, "w") : NULL;
  if (!file) return;
  for (int i = 0; i < counted; ++i) {
    fprintf(file, "%s\"%s\": %ld", i == 0 ? "{" : ", ", names[i], atomic_load(&counts[i]));
  }
  fprintf(file, "}\n");
  fclose(file);
}
