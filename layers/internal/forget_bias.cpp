#include <tessera/layers/internal/forget_bias.hpp>

#include <memory>
#include <string>
#include <utility>

#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {
namespace {

/// Draws by another initializer, with ones in the second quarter.
class ForgetBias final : public Initializer {
 public:
  explicit ForgetBias(InitializerHandle initializer) : initializer_(std::move(initializer)) {}
  std::string class_name() const override { return "ForgetBias"; }
  DTensor draw(const Shape& shape, at::ScalarType dtype, Seed seed) const override {
    const int64_t units = shape[0] / 4;
    return ops::concat({initializer_->draw({units}, dtype, seed), ones({units}, dtype),
                        initializer_->draw({2 * units}, dtype, fold_in(seed, 1))});
  }

 private:
  InitializerHandle initializer_;
};

}  // namespace

InitializerHandle forget_bias(const InitializerHandle& initializer) {
  return InitializerHandle(std::make_shared<ForgetBias>(initializer));
}

}  // namespace tessera::detail
