#include <tessera/framework/comm/nccl/cuda_graph.hpp>

#include <atomic>

#include <ATen/Context.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/nccl/cuda_runtime.hpp>

namespace tessera::detail {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

/// Returns a pool id distinct from ATen's, in which one of the two numbers is 0.
c10::MempoolId_t make_pool() {
  static std::atomic<c10::CaptureId_t> made = 0;
  return {++made, 1};
}

/// The memory that captured streams allocate, kept until this is destroyed.
class GraphMemory {
 public:
  explicit GraphMemory(c10::DeviceIndex gpu) : gpu_(gpu) {
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
    allocator::beginAllocateToPool(gpu_, pool_, [this](cudaStream_t stream) {
      return recording_ != 0 && recording_of(stream) == recording_;
    });
  }
  ~GraphMemory() {
    end();
    allocator::releasePool(gpu_, pool_);
  }
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  /// Begins to serve the capture that the stream takes part in.
  void begin(cudaStream_t stream) { recording_ = recording_of(stream); }
  void end() {
    if (!std::exchange(ended_, true)) allocator::endAllocateToPool(gpu_, pool_);
  }

 private:
  /// Returns CUDA's id of the capture that a stream takes part in; 0 for none.
  static unsigned long long recording_of(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long number = 0;
    const cudaError_t result =
        cuda_runtime().capture_info(stream, &status, &number, nullptr, nullptr, nullptr, nullptr);
    return result == cudaSuccess && status == cudaStreamCaptureStatusActive ? number : 0;
  }

  const c10::DeviceIndex gpu_;
  const c10::MempoolId_t pool_ = make_pool();
  /// Atomic, since other threads allocate memory, too.
  std::atomic<unsigned long long> recording_ = 0;
  bool ended_ = false;
};

class CudaGraph final : public GpuGraph {
 public:
  explicit CudaGraph(c10::cuda::CUDAStream stream)
      : stream_(stream), memory_(stream.device_index()) {
    const c10::DeviceGuard guard(stream_.device());
    // Thread-local: other threads are not restricted during the capture.
    cuda_.check(cuda_.begin_capture(stream_, cudaStreamCaptureModeThreadLocal), "begin capture");
    memory_.begin(stream_);
  }

  ~CudaGraph() override {
    const c10::DeviceGuard guard(stream_.device());
    if (!ended_) destroy(end_capture().graph);
    if (launchable_) cuda_.destroy_launchable(launchable_);
  }

  void end() override {
    const c10::DeviceGuard guard(stream_.device());
    const Captured captured = end_capture();
    cuda_.check(captured.result, "end capture");
    const cudaError_t result = cuda_.instantiate(&launchable_, captured.graph, 0);
    destroy(captured.graph);
    cuda_.check(result, "instantiate graph");
  }

  void replay(const c10::Stream& stream) const override {
    if (!launchable_) {
      throw StateError("GpuGraph", "a graph is replayed after its capture has ended",
                       "the capture has not ended, or it failed", "call end() first");
    }
    const c10::DeviceGuard guard(stream.device());
    cuda_.check(cuda_.launch_graph(launchable_, c10::cuda::CUDAStream(stream)), "launch graph");
  }

 private:
  struct Captured {
    cudaError_t result;
    cudaGraph_t graph;
  };

  Captured end_capture() {
    ended_ = true;
    cudaGraph_t graph = nullptr;
    const cudaError_t result = cuda_.end_capture(stream_, &graph);
    memory_.end();
    return {result, graph};
  }
  void destroy(cudaGraph_t graph) const {
    if (graph) cuda_.destroy_graph(graph);
  }

  const CudaRuntime& cuda_ = cuda_runtime();
  const c10::cuda::CUDAStream stream_;
  GraphMemory memory_;
  cudaGraphExec_t launchable_ = nullptr;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<GpuGraph> capture_on_cuda(const c10::Stream& stream) {
  return std::make_unique<CudaGraph>(c10::cuda::CUDAStream(stream));
}

}  // namespace tessera::detail
