#include <tessera/optimizers/sgd.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

namespace tessera {
namespace {

class SGDOptimizer : public Optimizer {
 public:
  SGDOptimizer(double learning_rate, const SGDOptions& options)
      : Optimizer(learning_rate, options.weight_decay), options_(options) {
    if (options.momentum >= 0 && options.momentum <= 1) return;
    throw ConfigError("SGD", "momentum lies in [0, 1]", str(options.momentum), "use 0.9");
  }
  std::string class_name() const override { return "SGD"; }
  Json config() const override {
    return {{"learning_rate", learning_rate()},
            {"momentum", options_.momentum},
            {"nesterov", options_.nesterov},
            {"weight_decay", weight_decay()}};
  }

 protected:
  std::vector<std::string> slot_names() const override {
    if (options_.momentum == 0) return {};
    return {"momentum"};
  }

  void update(const UpdateArgs& args) const override {
    at::Tensor weight = args.weight;
    const double rate = args.learning_rate;
    if (options_.momentum == 0) {
      weight.sub_(args.gradient, rate);
      return;
    }
    at::Tensor momentum = args.slots[0];
    momentum.mul_(options_.momentum).sub_(args.gradient, rate);
    if (options_.nesterov) {
      weight.add_(momentum, options_.momentum).sub_(args.gradient, rate);
    } else {
      weight.add_(momentum);
    }
  }

 private:
  SGDOptions options_;
};

}  // namespace

SGD::SGD(double learning_rate, SGDOptions options)
    : OptimizerRef(std::make_shared<SGDOptimizer>(learning_rate, options)) {}

}  // namespace tessera
