#include <tessera/layers/regularization/activity_regularization.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/nn/initializers/regularizers.hpp>
#include <tessera/framework/ops/elementwise.hpp>

namespace tessera {
namespace {

RegularizerHandle penalty(const ActivityRegularizationOptions& options) {
  try {
    return L1L2({.l1 = options.l1, .l2 = options.l2});
  } catch (const Error&) {
    rethrow_at("ActivityRegularization " + options.name);
  }
}

}  // namespace

ActivityRegularizationLayer::ActivityRegularizationLayer(
    const ActivityRegularizationOptions& options)
    : Layer({options.name, options.dtype, options.trainable}), l1_(options.l1), l2_(options.l2),
      penalty_(penalty(options)) {}

Json ActivityRegularizationLayer::config() const {
  Json json = Layer::config();
  json["l1"] = l1_;
  json["l2"] = l2_;
  return json;
}

DTensor ActivityRegularizationLayer::call(const Inputs& inputs, const CallContext&) {
  const DTensor& x = inputs[0];
  if (x.rank() == 0) {
    add_loss((*penalty_)(x));
  } else if (x.size(0) > 0) {
    add_loss((*penalty_)(x) / static_cast<double>(x.size(0)));
  }
  return x;
}

ActivityRegularization ActivityRegularization::from_config(JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  return ActivityRegularization({.l1 = config.take_or("l1", 0.0),
                                 .l2 = config.take_or("l2", 0.0),
                                 .name = options.name,
                                 .dtype = options.dtype,
                                 .trainable = options.trainable});
}

}  // namespace tessera
