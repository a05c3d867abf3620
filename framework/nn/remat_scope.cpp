#include <tessera/framework/nn/remat_scope.hpp>

#include <algorithm>

#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/nn/internal/layer_remat.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Returns the number of elements of all outputs for inputs of these shapes.
int64_t output_elements(const Layer& layer, const Shapes& inputs) {
  int64_t sum = 0;
  for (const Shape& shape : layer.output_shapes(inputs)) sum += numel(shape);
  return sum;
}

}  // namespace

RematScope::RematScope(const RematScopeOptions& options)
    : remat_(thread_state().layer_remat,
             options.mode == RematMode::none
                 ? nullptr
                 : std::make_shared<const LayerRemat>(
                       LayerRemat{options.mode, options.output_size_threshold, options.layer_names,
                                  SavedOps(options.policy)})) {}

void Layer::set_remat_rule(const RematRule* rule) {
  remat_rule_ = rule ? std::make_shared<const LayerRemat>(LayerRemat{
                           RematMode::list_of_layers, 0, {name_}, SavedOps(rule->policy)})
                     : nullptr;
}

RematCall::RematCall(const LayerRemat* remat, const Layer& layer, const Shapes& in) {
  if (!remat || !recording()) return;
  bool region = !layer.is_model();
  if (remat->mode == RematMode::activations) {
    activations_.emplace(thread_state().remat_activations, true);
    region = false;
  } else if (remat->mode == RematMode::list_of_layers) {
    region =
        std::find(remat->names.begin(), remat->names.end(), layer.name()) != remat->names.end();
  } else if (remat->mode == RematMode::larger_than) {
    region = region && output_elements(layer, in) > remat->threshold;
  }
  if (region) region_.emplace(remat->saved);
}

}  // namespace tessera
