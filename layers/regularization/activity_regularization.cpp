#include <tessera/layers/regularization/activity_regularization.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/initializers/regularizers.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(ActivityRegularizationOptions& o, const Visit& visit) {
  visit("l1", o.l1);
  visit("l2", o.l2);
}

namespace {

RegularizerHandle activity_penalty(const ActivityRegularizationOptions& options) {
  try {
    return L1L2({.l1 = options.l1, .l2 = options.l2});
  } catch (const Error&) {
    rethrow_at("ActivityRegularization " + options.name);
  }
}

class ActivityRegularizationLayer final : public Layer {
 public:
  explicit ActivityRegularizationLayer(const ActivityRegularizationOptions& options)
      : Layer(common_options(options)), options_(options), penalty_(activity_penalty(options)) {}
  std::string class_name() const override { return "ActivityRegularization"; }
  Json config() const override { return layer_config(*this, options_); }
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  ActivityRegularizationOptions options_;
  RegularizerHandle penalty_;
};

const RegisteredLayer registered_activity_regularization(
    "ActivityRegularization", [](JsonObject& config) {
      return ActivityRegularization(layer_options_from<ActivityRegularizationOptions>(config));
    });

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
    : LayerHandle(std::make_shared<ActivityRegularizationLayer>(options)) {}

}  // namespace tessera
