#include <tessera/layers/regularization/activity_regularization.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/initializers/regularizers.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(ActivityRegularizationOptions& o, const Visit& visit) {
  visit("l1", o.l1);
  visit("l2", o.l2);
}

namespace {

RegularizerHandle activity_penalty(const std::string& where,
                                   const ActivityRegularizationOptions& options) {
  try {
    return L1L2({.l1 = options.l1, .l2 = options.l2});
  } catch (const Error&) {
    rethrow_at(where);
  }
}

class ActivityRegularizationLayer final
    : public LayerOf<ActivityRegularizationLayer, ActivityRegularizationOptions> {
 public:
  static constexpr const char* keras_name = "ActivityRegularization";
  explicit ActivityRegularizationLayer(const ActivityRegularizationOptions& options)
      : LayerOf(options), penalty_(activity_penalty(where(), options)) {}
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  RegularizerHandle penalty_;
};

const RegisteredLayerOf<ActivityRegularizationLayer> registered_activity_regularization;

DTensor ActivityRegularizationLayer::call(const Inputs& inputs, const CallContext&) {
  const DTensor& x = inputs[0];
  if (x.rank() == 0) {
    add_loss((*penalty_)(x));
  } else {
    penalize(penalty_, x);
  }
  return x;
}

}  // namespace

ActivityRegularization::ActivityRegularization(const ActivityRegularizationOptions& options)
    : LayerHandle(make_layer<ActivityRegularizationLayer>(options)) {}

}  // namespace tessera
