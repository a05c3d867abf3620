#include <tessera/framework/comm/cross_device.hpp>

#include <algorithm>
#include <iostream>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/comm/internal/collective_bytes.hpp>
#include <tessera/framework/comm/internal/device_reducer.hpp>
#include <tessera/framework/comm/internal/local_communicator.hpp>
#include <tessera/framework/comm/internal/tree_reduce.hpp>

namespace tessera {

using namespace detail;

namespace {

using OpsKind = CrossDeviceOps::Kind;
using Tensors = std::vector<at::Tensor>;

std::string name_of(OpsKind kind) {
  switch (kind) {
    case OpsKind::nccl_all_reduce:
      return "NcclAllReduce";
    case OpsKind::hierarchical_copy:
      return "HierarchicalCopyAllReduce";
    case OpsKind::reduction_to_one_device:
      return "ReductionToOneDevice";
  }
  return "";
}

int64_t checked_packs(OpsKind kind, int64_t num_packs) {
  if (num_packs >= 0) return num_packs;
  throw ConfigError(name_of(kind), "num_packs is not negative", str(num_packs),
                    "pass the number of packs that a value is split into");
}

CrossDeviceOps made(OpsKind kind, int64_t num_packs) {
  return {kind, checked_packs(kind, num_packs), ""};
}

/// Reduces neighbours first, then their results; each pair on the device of its first operand.
at::Tensor pairwise_sum(Reduce kind, const Tensors& inputs) {
  std::vector<TreeAddend> addends;
  for (const at::Tensor& input : inputs) addends.push_back({std::ssize(addends), input});
  return tree_reduce(kind, std::move(addends));
}

at::Tensor sum_in_order(Reduce kind, Tensors inputs, c10::Device device) {
  for (at::Tensor& input : inputs) input = input.to(device);
  return reduce_all(kind, inputs);
}

/// Returns the elements of each input that belong to pack `pack` of `packs`.
Tensors pack_of(const Tensors& inputs, int64_t packs, int64_t pack) {
  const Interval range = shard_interval(inputs[0].numel(), packs, pack);
  Tensors list;
  for (const at::Tensor& input : inputs) {
    list.push_back(input.reshape({-1}).narrow(0, range.lo, range.size()));
  }
  return list;
}

/// The communicator inside one process that reduces by a tree, on one device, or by NCCL.
class CrossDeviceCommunicator final : public LocalCommunicator, public DeviceReducer {
 public:
  CrossDeviceCommunicator(CrossDeviceOps ops, std::optional<c10::Device> reduce_to,
                          std::shared_ptr<DeviceReducer> nccl)
      : ops_(std::move(ops)), reduce_to_(reduce_to), nccl_(std::move(nccl)) {}

  std::string name() const override { return name_of(ops_.kind); }

  WorkPtr all_reduce(const Group& group, Reduce kind, const Tensors& inputs,
                     at::Tensor& out) override {
    if (group.tree) return LocalCommunicator::all_reduce(group, kind, inputs, out);
    const ProfileSpan span(SpanKind::collective, "all_reduce", reduced_bytes(inputs));
    check(group);
    out = in_packs(inputs, [&](const Tensors& pack) { return Tensors{reduced(kind, pack)}; })[0].to(
        inputs[0].device());
    return nullptr;
  }

  Tensors all_reduce_each(Reduce kind, const Tensors& inputs) override {
    const ProfileSpan span(SpanKind::collective, "all_reduce", reduced_bytes(inputs));
    check_alive();
    if (nccl_) {
      return in_packs(inputs,
                      [&](const Tensors& pack) { return nccl_->all_reduce_each(kind, pack); });
    }
    const at::Tensor sum =
        in_packs(inputs, [&](const Tensors& pack) { return Tensors{reduced(kind, pack)}; })[0];
    Tensors copies;
    for (const at::Tensor& input : inputs) copies.push_back(sum.to(input.device()));
    return copies;
  }

 private:
  /// Applies `reduce` to the inputs pack by pack, and joins the results.
  template <class Reduction>
  Tensors in_packs(const Tensors& inputs, const Reduction& reduce) const {
    const int64_t elements = std::max<int64_t>(1, inputs[0].numel());
    const int64_t packs = std::clamp<int64_t>(ops_.num_packs, 1, elements);
    if (packs == 1) return reduce(inputs);
    std::vector<Tensors> outputs;
    for (int64_t p = 0; p < packs; ++p) {
      const Tensors results = reduce(pack_of(inputs, packs, p));
      outputs.resize(results.size());
      for (size_t i = 0; i < results.size(); ++i) outputs[i].push_back(results[i]);
    }
    Tensors joined;
    for (const Tensors& output : outputs) joined.push_back(at::cat(output).view(inputs[0].sizes()));
    return joined;
  }

  at::Tensor reduced(Reduce kind, const Tensors& inputs) const {
    if (ops_.kind == OpsKind::hierarchical_copy) return pairwise_sum(kind, inputs);
    return sum_in_order(kind, inputs, reduce_to_.value_or(inputs[0].device()));
  }

  const CrossDeviceOps ops_;
  const std::optional<c10::Device> reduce_to_;
  const std::shared_ptr<DeviceReducer> nccl_;
};

void warn_of_cpus(Device device) {
  static std::once_flag once;
  std::call_once(once, [&] {
    std::cerr << "Warning: NcclAllReduce works between GPUs only, and " << to_string(device)
              << " is not a GPU: using ReductionToOneDevice\n";
  });
}

c10::Device torch_device(Device device) {
  if (device.type == Device::Type::cpu) return c10::Device(c10::kCPU);
  return gpu(device.index).device;
}

void check_distinct(const std::vector<Device>& devices) {
  std::set<int> seen;
  for (Device device : devices) {
    if (seen.insert(device.index).second) continue;
    throw ConfigError("NcclAllReduce", "each GPU is named once", to_string(device) + " twice",
                      "name distinct GPUs, or use HierarchicalCopyAllReduce");
  }
}

}  // namespace

NcclAllReduce::NcclAllReduce(int64_t packs)
    : CrossDeviceOps(made(OpsKind::nccl_all_reduce, packs)) {}

HierarchicalCopyAllReduce::HierarchicalCopyAllReduce(int64_t packs)
    : CrossDeviceOps(made(OpsKind::hierarchical_copy, packs)) {}

ReductionToOneDevice::ReductionToOneDevice(const std::string& device)
    : CrossDeviceOps{OpsKind::reduction_to_one_device, 1, device} {}

std::shared_ptr<Communicator> detail::cross_device_communicator(
    const CrossDeviceOps& ops, const std::vector<Device>& devices) {
  CrossDeviceOps used = ops;
  used.num_packs = checked_packs(ops.kind, ops.num_packs);
  std::optional<c10::Device> reduce_to;
  if (!ops.reduce_to_device.empty()) {
    reduce_to = torch_device(device_from_string(ops.reduce_to_device));
  }
  std::shared_ptr<DeviceReducer> nccl;
  if (ops.kind == OpsKind::nccl_all_reduce) {
    const auto cpu = std::find_if(devices.begin(), devices.end(),
                                  [](Device device) { return device.type == Device::Type::cpu; });
    if (cpu != devices.end()) {
      warn_of_cpus(*cpu);
      used.kind = OpsKind::reduction_to_one_device;
    } else {
      check_distinct(devices);
      nccl = make_nccl_devices();
    }
  }
  return std::make_shared<CrossDeviceCommunicator>(used, reduce_to, nccl);
}

DeviceReducer* detail::device_reducer(Communicator& communicator) {
  return dynamic_cast<DeviceReducer*>(&communicator);
}

}  // namespace tessera
