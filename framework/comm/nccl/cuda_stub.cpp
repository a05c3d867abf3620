#include <tessera/framework/comm/internal/accelerator.hpp>

namespace tessera::detail {
namespace {

class NoGpus final : public Accelerator {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
  int count() const override { return 0; }
  std::string unavailable_reason() const override {
    return "this build of Tessera has no GPU support, like the libtorch that it was built with";
  }
  void load() const override {}
  void launch(const DeviceKernel&, const c10::Stream&, uint64_t, const void*) const override {}
  std::unique_ptr<GpuGraph> capture_graph(const c10::Stream&) const override { return nullptr; }
};

}  // namespace

std::unique_ptr<const Accelerator> make_cuda() { return std::make_unique<NoGpus>(); }

}  // namespace tessera::detail
