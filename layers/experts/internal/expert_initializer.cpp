#include <tessera/layers/experts/internal/expert_initializer.hpp>

#include <cmath>
#include <memory>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/fans.hpp>

namespace tessera::detail {
namespace {

/// Keras counts the expert axis in both fans, and every rule divides the variance by a fan:
/// multiplying draws by sqrt(experts) undoes this.
class ExpertInitializer final : public Initializer {
 public:
  ExpertInitializer(InitializerHandle of_matrix, int64_t experts)
      : of_matrix_(std::move(of_matrix)), scale_(std::sqrt(static_cast<double>(experts))) {}
  std::string class_name() const override { return "Expert"; }
  DTensor draw(const Shape& shape, at::ScalarType dtype, Seed seed) const override {
    return ops::scale(of_matrix_->draw(shape, dtype, seed), scale_);
  }

 private:
  InitializerHandle of_matrix_;
  double scale_;
};

}  // namespace

InitializerHandle per_expert_initializer(const InitializerHandle& of_matrix, int64_t experts) {
  if (!scales_by_fans(of_matrix)) return of_matrix;
  return InitializerHandle(std::make_shared<ExpertInitializer>(of_matrix, experts));
}

}  // namespace tessera::detail
