#include <tessera/framework/nn/registry.hpp>
#include <tessera/optimizers/optimizers.hpp>

namespace tessera {

OptimizerRef make_optimizer(const std::string& name) {
  static const Factories<OptimizerRef> factories = {
      {"adam", [] { return Adam(); }},
      {"adamw", [] { return AdamW(); }},
      {"sgd", [] { return SGD(); }},
  };
  return make_by_name("optimizer", factories, name);
}

OptimizerRef::OptimizerRef(const char* name) : OptimizerRef(make_optimizer(name)) {}

}  // namespace tessera
