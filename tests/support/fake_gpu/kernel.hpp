#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include <ATen/core/TensorBody.h>
#include <ATen/core/ivalue.h>

namespace tessera::test::fake_gpu {

/// What a GPU does while this lives: it has the GPU's lock, and all that its current stream had to
/// do before is done.
class Kernel {
 public:
  /// `op` is kept by its address.
  Kernel(c10::DeviceIndex device, const char* op);

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

/// Tensors of a GPU as the CPU's kernels see them: the same memory, at the addresses of kernels.
class Aliases {
 public:
  /// A tensor of the host as it is.
  at::Tensor of(const at::Tensor& tensor);

 private:
  std::vector<std::pair<const c10::StorageImpl*, c10::Storage>> storages_;
};

using Values = std::vector<c10::IValue>;
/// What a kernel does with tensors of the CPU: it puts its results in the place of its arguments.
using Body = std::function<void(Values&)>;
/// Runs a kernel on the memory of a GPU, or where the GPU's current stream records, keeps it for
/// replays, `name` by its address. Its results are new tensors of the GPU; others that it put in
/// place are left as they are.
Values run_kernel(c10::Device gpu, const char* name, const Values& given, const Body& body);

/// Calls body(tensor) for each tensor that a value holds.
template <class Body>
void for_each_tensor(const c10::IValue& value, const Body& body) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) body(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) body(tensor);
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      if (tensor && tensor->defined()) body(*tensor);
    }
  }
}

inline bool is_on_gpu(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().is_privateuseone();
}

}  // namespace tessera::test::fake_gpu
