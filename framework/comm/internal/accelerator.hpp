#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace tessera::detail {

/// One of Tessera's own kernels: one source for the host's compiler and for GPUs.
struct DeviceKernel {
  const char* name;    ///< the source's extern "C" function of parameters and count, for GPUs
  const char* source;  ///< source text for NVRTC
  /// Runs call number `index` of the kernel, compiled for the host.
  void (*on_host)(const void* parameters, uint64_t index) = nullptr;
  size_t parameter_bytes = 0;
};

/// GPU work that is captured once and replayed by one launch, on the same addresses with their
/// current contents. Memory allocated during the capture belongs to the graph: nobody else gets it
/// while the graph is alive. Host memory that a captured copy reads or writes must be pinned and
/// outlive the graph.
class GpuGraph {
 public:
  /// Abandons a capture that was not ended, and frees its memory.
  virtual ~GpuGraph() = default;
  /// Ends the capture, on the thread that began it. Throws StateError if an operation meanwhile
  /// cannot be captured, or if work of another stream was not waited for.
  virtual void end() = 0;
  /// Queues the captured work on a stream of the same GPU. Throws StateError before end().
  virtual void replay(const c10::Stream& stream) const = 0;
};

/// The backend of a process's GPUs: CUDA, or an imitation in tests. Kernels, streams, events and
/// memory are ATen's, which handles any device type; only what ATen cannot answer is asked here.
class Accelerator {
 public:
  virtual ~Accelerator() = default;
  /// ATen's type of these devices.
  virtual c10::DeviceType type() const = 0;
  /// Returns the number of GPUs that this process may use; queries only the driver.
  virtual int count() const = 0;
  /// Returns what this build or machine lacks, if there are no GPUs.
  virtual std::string unavailable_reason() const = 0;
  /// Registers ATen's kernels for the GPUs. Called once, and only if there are GPUs. Throws
  /// ConfigError.
  virtual void load() const = 0;
  /// Queues `count` calls of a kernel on a stream, with a copy of the parameters. Throws
  /// ConfigError if the kernel does not compile.
  virtual void launch(const DeviceKernel& kernel, const c10::Stream& stream, uint64_t count,
                      const void* parameters) const = 0;
  /// Implements the function capture_graph().
  virtual std::unique_ptr<GpuGraph> capture_graph(const c10::Stream& stream) const = 0;
};

/// Returns CUDA's GPUs, subject to CUDA_VISIBLE_DEVICES; none in a build without CUDA.
std::unique_ptr<const Accelerator> make_cuda();

/// Replaces CUDA by another backend. Throws StateError after the first use of the accelerator.
void use_accelerator(std::unique_ptr<const Accelerator> other);

/// A GPU of this process and its streams.
struct Gpu {
  c10::Device device;
  c10::Stream communication;  ///< high priority; used by engines only
  c10::Stream upload;         ///< copies from the host that overlap with computation
  /// Returns this thread's current stream on the GPU.
  c10::Stream compute() const;
};

/// Returns the number of GPUs that this process may use.
int gpu_count();

/// Returns the GPU "cuda:index". The first call loads ATen's kernels for GPUs. Throws ConfigError
/// in a build without CUDA, on a machine without GPUs, for an index out of range, and for a library
/// that cannot be loaded.
const Gpu& gpu(int index);

/// Loads ATen's kernels for GPUs if there are GPUs. ATen checks only once whether it has them, in
/// convolutions even on CPUs: call this before anything that may trigger the check.
void load_gpus();

/// Queues `count` calls of a kernel on this thread's current stream of the GPU.
void launch(const DeviceKernel& kernel, c10::Device gpu, uint64_t count, const void* parameters);

/// Begins to capture the work queued on `stream`, which must not be a default stream, and on
/// streams that wait for it; captured work does not run. Until GpuGraph::end() this thread may not
/// synchronize with a GPU or query it, copy from or to memory that is not pinned, or make the
/// stream wait for a stream that is not captured: that throws, and so does end(). Run the work once
/// before capturing it, since libraries allocate resources in their first call.
std::unique_ptr<GpuGraph> capture_graph(const c10::Stream& stream);

/// Returns the peak number of bytes that tensors on the GPU "cuda:index" held, by ATen's allocator,
/// since the last reset_gpu_peaks(), if any. Throws like gpu().
int64_t gpu_peak(int index);
/// Resets the peaks of all GPUs in use.
void reset_gpu_peaks();

/// Makes all work queued on `after` from now on wait for the work now on `before`, without blocking
/// the thread. Both streams belong to one GPU.
void order(const c10::Stream& before, const c10::Stream& after);

}  // namespace tessera::detail
