#include <tessera/optimizers/muon.hpp>

#include <algorithm>
#include <cmath>
#include <memory>

#include <ATen/ATen.h>
#include <re2/re2.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/registry.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/optimizers/internal/block_values.hpp>
#include <tessera/optimizers/internal/list_optimizer.hpp>
#include <tessera/optimizers/internal/optimizer_config.hpp>
#include <tessera/optimizers/internal/option_checks.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(MuonOptions& o, const Visit& visit) {
  visit("adam_beta_1", o.adam_beta_1);
  visit("adam_beta_2", o.adam_beta_2);
  visit("epsilon", o.epsilon);
  visit("exclude_layers", o.exclude_layers);
  visit("muon_a", o.muon_a);
  visit("muon_b", o.muon_b);
  visit("muon_c", o.muon_c);
  visit("adam_lr_ratio", o.adam_lr_ratio);
  visit("momentum", o.momentum);
  visit("ns_steps", o.ns_steps);
  visit("nesterov", o.nesterov);
  visit("exclude_embeddings", o.exclude_embeddings);
  visit("adam_weight_decay", o.adam_weight_decay);
  visit("rms_rate", o.rms_rate);
}

namespace {

const Registered registered_muon(optimizer_factories(), {"Muon"}, optimizer_of<Muon, MuonOptions>);

class MuonOptimizer : public ListOptimizer<MuonOptimizer> {
 public:
  MuonOptimizer(const LearningRate& learning_rate, const MuonOptions& options)
      : ListOptimizer("Muon", learning_rate, base_options(options)), options_(options) {
    check_decay("Muon", "adam_beta_1", options.adam_beta_1);
    check_decay("Muon", "adam_beta_2", options.adam_beta_2);
    check_not_negative("Muon", "epsilon", options.epsilon);
    check_not_negative("Muon", "adam_weight_decay", options.adam_weight_decay.value_or(0));
    check_not_negative("Muon", "adam_lr_ratio", options.adam_lr_ratio);
    check_not_negative("Muon", "ns_steps", static_cast<double>(options.ns_steps));
    check_fraction("Muon", "momentum", options.momentum);
    for (const std::string& expression : options.exclude_layers) {
      excluded_.push_back(std::make_shared<re2::RE2>(expression, re2::RE2::Quiet));
      if (excluded_.back()->ok()) continue;
      throw ConfigError("Muon, exclude_layers", "an RE2 expression",
                        str(in_quotes(expression), ": ", excluded_.back()->error()),
                        "put a backslash before special characters");
    }
  }
  Json config() const override {
    Json config = optimizer_config(*this, options_);
    // Keras writes an empty list as [], not null.
    config["exclude_layers"] = options_.exclude_layers;
    return config;
  }

  /// Adam's update, for the variables that are not orthogonalized.
  template <class Args>
  void rule(const Args& args) const {
    const auto &momentum = args.slots[0], &velocity = args.slots[1];
    const double beta_1 = options_.adam_beta_1, beta_2 = options_.adam_beta_2;
    momentum.lerp_(args.gradient, 1 - beta_1);
    velocity.mul_(beta_2).addcmul_(args.gradient, args.gradient, 1 - beta_2);
    const auto step = static_cast<double>(args.step);
    const double rate = args.learning_rate * options_.adam_lr_ratio *
                        std::sqrt(1 - std::pow(beta_2, step)) / (1 - std::pow(beta_1, step));
    args.weight.addcdiv_(momentum, velocity.sqrt().add_(options_.epsilon), -rate);
  }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable& variable) const override {
    if (by_adam(variable)) return {{"momentum"}, {"velocity"}};
    return {{"momentum"}};
  }
  std::optional<double> weight_decay_of(const Variable& variable) const override {
    return by_adam(variable) ? options_.adam_weight_decay : options_.weight_decay;
  }
  bool needs_full_variable() const override { return true; }

  void update_variables(const std::vector<VariableUpdate>& updates) const override {
    std::vector<UpdateArgs> by_adam;
    for (const VariableUpdate& update : updates) {
      if (update.slots.size() == 2) {
        add_blocks(update, by_adam);
      } else {
        update_matrix(update);
      }
    }
    update_all(by_adam);
  }

 private:
  bool by_adam(const Variable& variable) const {
    const std::string& path = variable.path();
    if (variable.shape().size() != 2) return true;
    if (options_.exclude_embeddings && lower_case(path).find("embedding") != std::string::npos) {
      return true;
    }
    return std::any_of(excluded_.begin(), excluded_.end(), [&](const auto& expression) {
      return re2::RE2::PartialMatch(path, *expression);
    });
  }

  void update_matrix(const VariableUpdate& update) const {
    const Blocks& momenta = update.slots[0].value().blocks();
    const DTensor direction = with_blocks(update.gradient, [&](size_t b) {
      const at::Tensor& gradient = update.gradient.blocks()[b];
      momenta[b].mul_(options_.momentum).add_(gradient);
      return options_.nesterov ? gradient.add(momenta[b], options_.momentum) : momenta[b];
    });
    double rate = update.learning_rate;
    if (options_.rms_rate) {
      const auto longer = static_cast<double>(std::max(direction.size(0), direction.size(1)));
      rate *= std::sqrt(longer) * *options_.rms_rate;
    }
    subtract(update.weight, relayout_to(orthogonal(direction), update.weight.sharding()), rate);
  }

  /// Approximates the orthogonal matrix nearest to a matrix' direction. Gathers a sharded matrix
  /// once, since each iteration would gather it.
  DTensor orthogonal(const DTensor& matrix) const {
    const bool tall = matrix.size(0) > matrix.size(1);
    DTensor x = ops::relayout(matrix, Layout::replicated(matrix.mesh(), 2));
    if (tall) x = ops::transpose(x);
    // Squares in float16 overflow.
    const DTensor wide = widened(x);
    const DTensor norm = ops::sqrt(ops::sum(ops::square(wide), {}, /*keepdims=*/true));
    x = ops::cast(wide / (norm + 1e-7), x.dtype());
    for (int64_t i = 0; i < options_.ns_steps; ++i) {
      const DTensor gram = ops::matmul(x, x, false, /*transpose_b=*/true);
      const DTensor factor = gram * options_.muon_b + ops::matmul(gram, gram) * options_.muon_c;
      x = x * options_.muon_a + ops::matmul(factor, x);
    }
    return tall ? ops::transpose(x) : x;
  }

  MuonOptions options_;
  std::vector<std::shared_ptr<re2::RE2>> excluded_;
};

}  // namespace

Muon::Muon(LearningRate learning_rate, MuonOptions options)
    : OptimizerHandle(std::make_shared<MuonOptimizer>(learning_rate, options)) {}

}  // namespace tessera
