#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <tessera/framework/tensor/step_memory.hpp>

namespace tessera {
namespace {

/// Of smaller tensors the usual allocator keeps lists that are as quick.
constexpr size_t smallest = 1024;

/// The usual allocator for all that does not belong to a run.
class HookedAllocator final : public c10::Allocator {
 public:
  explicit HookedAllocator(c10::Allocator& usual) : usual_(usual) {}
  c10::DataPtr allocate(size_t bytes) override {
    return bytes < smallest ? usual_.allocate(bytes) : StepMemory::allocate(bytes, usual_);
  }
  bool is_simple_data_ptr(const c10::DataPtr& data) const override {
    return usual_.is_simple_data_ptr(data);
  }
  c10::DeleterFnPtr raw_deleter() const override { return usual_.raw_deleter(); }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    usual_.copy_data(to, from, bytes);
  }

 private:
  c10::Allocator& usual_;
};

/// ATen's allocators are set while a program starts, before there are threads that ask.
[[maybe_unused]] const bool hooked = [] {
  // Never destroyed: what lives until the end of the program may ask it.
  static auto* const allocator = new HookedAllocator(*c10::GetCPUAllocator());
  c10::SetCPUAllocator(allocator);
  return true;
}();

}  // namespace
}  // namespace tessera
