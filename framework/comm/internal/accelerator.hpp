#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace tessera::detail {

/// A kernel of Tessera's own, from one source for the host's compiler and for GPUs.
struct DeviceKernel {
  const char* name;    ///< the source's extern "C" function of parameters and count, for GPUs
  const char* source;  ///< as NVRTC takes it
  /// One of its calls, as the host's compiler has it.
  void (*on_host)(const void* parameters, uint64_t index) = nullptr;
  size_t parameter_bytes = 0;
};

/// Work of a GPU that is recorded once, to be repeated at the cost of one launch: on the same
/// addresses, with what then lies there. Memory that is asked for meanwhile is the graph's own:
/// nobody else gets it while the graph lives. What a recorded copy reads of the host, or writes
/// there, is pinned and lives as long.
class GpuGraph {
 public:
  /// Gives up a recording that was not ended, and its memory.
  virtual ~GpuGraph() = default;
  /// Ends the recording, on the thread that began it. Throws StateError where something was done
  /// meanwhile that cannot be recorded, and where work of another stream was not waited for.
  virtual void end() = 0;
  /// Queues all that was recorded on a stream of the same GPU. Throws StateError before end().
  virtual void replay(const c10::Stream& stream) const = 0;
};

/// The kind of GPUs that a process computes on: CUDA's, or an imitation that tests put in its
/// place. Kernels, streams, events and memory are ATen's, which knows them for any type of device;
/// what only the kind itself can tell is asked of it here.
class Accelerator {
 public:
  virtual ~Accelerator() = default;
  /// ATen's name of these devices.
  virtual c10::DeviceType type() const = 0;
  /// GPUs that this process may use; asks the driver alone.
  virtual int count() const = 0;
  /// What this build or machine lacks, where there are none.
  virtual std::string why_none() const = 0;
  /// Makes ATen's kernels for them known; called once, where there are GPUs. Throws ConfigError.
  virtual void load() const = 0;
  /// Queues `count` calls of a kernel on a stream, with a copy of the parameters. Throws
  /// ConfigError where the kernel cannot be compiled.
  virtual void launch(const DeviceKernel& kernel, const c10::Stream& stream, uint64_t count,
                      const void* parameters) const = 0;
  /// As the function below.
  virtual std::unique_ptr<GpuGraph> record_graph(const c10::Stream& stream) const = 0;
};

/// CUDA's GPUs, as CUDA_VISIBLE_DEVICES has them; none in a build without CUDA.
std::unique_ptr<const Accelerator> make_cuda();

/// Takes another kind in place of CUDA. Throws StateError once GPUs were asked for.
void use_accelerator(std::unique_ptr<const Accelerator> other);

/// A GPU of this process, and the streams that its work is queued on.
struct Gpu {
  c10::Device device;
  c10::Stream communication;  ///< has a high priority; only engines use it
  c10::Stream upload;         ///< what comes from the host goes there beside what is computed
  /// The stream that this thread's operations on the GPU go to.
  c10::Stream compute() const;
};

/// GPUs that this process may use.
int gpu_count();

/// The GPU "cuda:index". Loads ATen's kernels for GPUs with the first. Throws ConfigError in a
/// build without CUDA, on a machine without GPUs, for an index beyond them, and for a library that
/// cannot be loaded.
const Gpu& gpu(int index);

/// Loads ATen's kernels for GPUs where there are GPUs. ATen asks once whether it has them and
/// remembers the answer: to be called before what may ask, as convolutions on CPUs do.
void load_gpus();

/// Queues `count` calls of a kernel behind what the GPU was given by this thread.
void launch(const DeviceKernel& kernel, c10::Device gpu, uint64_t count, const void* parameters);

/// Begins to record what a stream, not a GPU's default one, is given from now on, and what streams
/// are given that come to wait for it: it is kept and not done. Until the end this thread may not
/// wait for a GPU or ask how far it is, copy from or to memory that is not pinned, or make the
/// stream wait for one that is not recorded: that throws, and so does end(). What is recorded was
/// done once before, since libraries make what they need when they are first called.
std::unique_ptr<GpuGraph> record_graph(const c10::Stream& stream);

/// The most bytes that tensors on the GPU "cuda:index" held at a time, of ATen's allocator: since
/// reset_gpu_peaks(), if that was called. Throws as gpu().
int64_t gpu_peak(int index);
/// Of the GPUs that were asked for.
void reset_gpu_peaks();

/// What `after` is given from now on begins when what `before` was given is done; nothing waits.
/// Both are of one GPU.
void order(const c10::Stream& before, const c10::Stream& after);

}  // namespace tessera::detail
