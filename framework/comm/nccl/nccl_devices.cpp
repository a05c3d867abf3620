#include <map>
#include <string>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/comm/internal/device_reducer.hpp>
#include <tessera/framework/comm/nccl/nccl_buffers.hpp>
#include <tessera/framework/comm/nccl/nccl_library.hpp>

namespace tessera::detail {
namespace {

/// Reduces between GPUs of this process only; creates a communicator at the first use of each list
/// of GPUs.
class NcclDevices final : public DeviceReducer {
 public:
  ~NcclDevices() override {
    // As a group: an abort of one communicator alone would wait for the others.
    nccl_.group_start();
    for (const auto& [devices, comms] : comms_) {
      for (NcclComm* comm : comms) nccl_.comm_abort(comm);
    }
    nccl_.group_end();
  }

  std::vector<at::Tensor> all_reduce_each(Reduce kind,
                                          const std::vector<at::Tensor>& inputs) override {
    const c10::InferenceMode inference;
    const std::vector<NcclComm*>& comms = comms_of(inputs);
    std::vector<at::Tensor> wires, sums;
    for (const at::Tensor& input : inputs) {
      const Gpu& gpu = gpu_of(input);
      const c10::DeviceGuard guard(gpu.device);
      wires.push_back(to_wire(input));
      sums.push_back(at::empty_like(wires.back()));
      wires.back().record_stream(gpu.communication);
      sums.back().record_stream(gpu.communication);
      order(gpu.compute(), gpu.communication);
    }
    if (inputs[0].numel() > 0) queue(kind, inputs[0].scalar_type(), comms, wires, sums);
    for (at::Tensor& sum : sums) {
      const Gpu& gpu = gpu_of(sum);
      order(gpu.communication, gpu.compute());
      const c10::DeviceGuard guard(gpu.device);
      sum = from_wire(sum, inputs[0].scalar_type());
    }
    return sums;
  }

 private:
  static const Gpu& gpu_of(const at::Tensor& tensor) { return gpu(tensor.device().index()); }

  void queue(Reduce kind, at::ScalarType dtype, const std::vector<NcclComm*>& comms,
             const std::vector<at::Tensor>& wires, const std::vector<at::Tensor>& sums) {
    check(nccl_.group_start());
    NcclResult result = NcclResult::success;
    for (size_t i = 0; i < wires.size() && result == NcclResult::success; ++i) {
      const NcclStream stream = gpu_of(wires[i]).communication.native_handle();
      result =
          nccl_.all_reduce(wires[i].const_data_ptr(), sums[i].mutable_data_ptr(),
                           static_cast<size_t>(wires[i].numel()), nccl_type(wires[i].scalar_type()),
                           nccl_op(kind, dtype), comms[i], stream);
    }
    const NcclResult ended = nccl_.group_end();
    check(result == NcclResult::success ? ended : result);
  }

  const std::vector<NcclComm*>& comms_of(const std::vector<at::Tensor>& inputs) {
    std::vector<int> devices;
    for (const at::Tensor& input : inputs) devices.push_back(input.device().index());
    const auto it = comms_.find(devices);
    if (it != comms_.end()) return it->second;
    std::vector<NcclComm*> comms(devices.size());
    check(nccl_.comm_init_all(comms.data(), static_cast<int>(comms.size()), devices.data()));
    return comms_[devices] = comms;
  }

  void check(NcclResult result) const {
    if (result == NcclResult::success) return;
    const char* last = nccl_.get_last_error(nullptr);
    const std::string detail = last && *last ? str(", ", one_line(last)) : "";
    throw CommError("NcclAllReduce", "NCCL calls succeed", nccl_.get_error_string(result) + detail,
                    "set NCCL_DEBUG=WARN to see more");
  }

  const NcclLibrary& nccl_ = nccl_library();
  std::map<std::vector<int>, std::vector<NcclComm*>> comms_;
};

}  // namespace

std::shared_ptr<DeviceReducer> make_nccl_devices() { return std::make_shared<NcclDevices>(); }

}  // namespace tessera::detail
