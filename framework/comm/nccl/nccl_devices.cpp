#include <map>
#include <string>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/device_reducer.hpp>
#include <tessera/framework/comm/nccl/cuda_device.hpp>
#include <tessera/framework/comm/nccl/nccl_buffers.hpp>
#include <tessera/framework/comm/nccl/nccl_library.hpp>

namespace tessera::detail {
namespace {

/// Communicators of GPUs that this process holds all of, made when they first meet.
class NcclDevices final : public DeviceReducer {
 public:
  ~NcclDevices() override {
    // As a group: one alone would wait for the others.
    nccl_.group_start();
    for (const auto& [devices, comms] : comms_) {
      for (ncclComm_t comm : comms) nccl_.comm_abort(comm);
    }
    nccl_.group_end();
  }

  std::vector<at::Tensor> all_reduce_each(Reduce kind,
                                          const std::vector<at::Tensor>& parts) override {
    const c10::InferenceMode inference;
    const std::vector<ncclComm_t>& comms = of(parts);
    std::vector<at::Tensor> wires, sums;
    for (const at::Tensor& part : parts) {
      const CudaDevice& gpu = gpu_of(part);
      const c10::DeviceGuard guard(gpu.device);
      wires.push_back(to_wire(part));
      sums.push_back(at::empty_like(wires.back()));
      wires.back().record_stream(gpu.communication);
      sums.back().record_stream(gpu.communication);
      order(gpu.device, gpu.compute, gpu.communication);
    }
    if (parts[0].numel() > 0) queue(kind, parts[0].scalar_type(), comms, wires, sums);
    for (at::Tensor& sum : sums) {
      const CudaDevice& gpu = gpu_of(sum);
      order(gpu.device, gpu.communication, gpu.compute);
      const c10::DeviceGuard guard(gpu.device);
      sum = from_wire(sum, parts[0].scalar_type());
    }
    return sums;
  }

 private:
  static const CudaDevice& gpu_of(const at::Tensor& tensor) {
    return cuda_device(tensor.device().index());
  }

  /// What `after` is given from now on begins when what `before` was given is done.
  static void order(c10::Device device, const c10::Stream& before, const c10::Stream& after) {
    const c10::DeviceGuard guard(device);
    c10::Event event(c10::kCUDA);
    event.record(before);
    event.block(after);
  }

  void queue(Reduce kind, at::ScalarType dtype, const std::vector<ncclComm_t>& comms,
             const std::vector<at::Tensor>& wires, const std::vector<at::Tensor>& sums) {
    check(nccl_.group_start());
    ncclResult_t result = ncclSuccess;
    for (size_t i = 0; i < wires.size() && result == ncclSuccess; ++i) {
      const auto stream =
          static_cast<cudaStream_t>(gpu_of(wires[i]).communication.native_handle());
      result = nccl_.all_reduce(wires[i].const_data_ptr(), sums[i].mutable_data_ptr(),
                                static_cast<size_t>(wires[i].numel()),
                                nccl_type(wires[i].scalar_type()), nccl_op(kind, dtype), comms[i],
                                stream);
    }
    const ncclResult_t ended = nccl_.group_end();
    check(result == ncclSuccess ? ended : result);
  }

  const std::vector<ncclComm_t>& of(const std::vector<at::Tensor>& parts) {
    std::vector<int> devices;
    for (const at::Tensor& part : parts) devices.push_back(part.device().index());
    const auto found = comms_.find(devices);
    if (found != comms_.end()) return found->second;
    std::vector<ncclComm_t> comms(devices.size());
    check(nccl_.comm_init_all(comms.data(), static_cast<int>(comms.size()), devices.data()));
    return comms_[devices] = comms;
  }

  void check(ncclResult_t result) const {
    if (result == ncclSuccess) return;
    const char* last = nccl_.get_last_error(nullptr);
    const std::string detail = last && *last ? str(", ", one_line(last)) : "";
    throw CommError("NcclAllReduce", "NCCL carries out what it is asked for",
                    nccl_.get_error_string(result) + detail, "set NCCL_DEBUG=WARN to see more");
  }

  const NcclLibrary& nccl_ = nccl_library();
  std::map<std::vector<int>, std::vector<ncclComm_t>> comms_;
};

}  // namespace

std::shared_ptr<DeviceReducer> make_nccl_devices() { return std::make_shared<NcclDevices>(); }

}  // namespace tessera::detail
