#include <tessera/optimizers/adam.hpp>

#include <cmath>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/comm/world_size_invariant.hpp>
#include <tessera/framework/optimizer/internal/for_each_block.hpp>
#include <tessera/optimizers/internal/adam_optimizer.hpp>
#include <tessera/optimizers/internal/optimizer_config.hpp>

namespace tessera {

using namespace detail;

namespace {

const Registered registered_adam(optimizer_factories(), {"Adam"}, optimizer_of<Adam, AdamOptions>);

/// Blocks whose ends, of fewer elements than ATen's vectors, are in padded copies. The fused kernel
/// updates such ends one by one, which rounds differently, so that a weight's bits would depend on
/// how it is sharded.
class PaddedEnds {
 public:
  explicit PaddedEnds(const std::vector<UpdateArgs>& blocks) {
    for (const UpdateArgs& block : blocks) add(block);
  }

  /// The blocks in whole vectors, to be updated.
  const std::vector<UpdateArgs>& blocks() const { return blocks_; }
  /// Copies the updated ends to where they belong.
  void write_back() const {
    for (const auto& [end, padded] : ends_) end.copy_(padded.narrow(0, 0, end.numel()));
  }

 private:
  static constexpr int64_t vector_bytes = 64;  ///< at least as many as a vector of any processor

  void add(const UpdateArgs& block) {
    const int64_t width = vector_bytes / static_cast<int64_t>(block.weight.element_size());
    const int64_t count = block.weight.numel(), rest = count % width;
    if (rest == 0 || !block.weight.is_cpu() || !block.weight.is_non_overlapping_and_dense()) {
      blocks_.push_back(block);
      return;
    }
    UpdateArgs whole = block, last = block;
    const auto split = [&](const at::Tensor& all, at::Tensor& vectors, at::Tensor& padded) {
      const at::Tensor flat = all.as_strided({count}, {1});
      vectors = flat.narrow(0, 0, count - rest);
      padded = at::zeros({width}, flat.options());
      const at::Tensor end = flat.narrow(0, count - rest, rest);
      padded.narrow(0, 0, rest).copy_(end);
      return end;
    };
    split(block.gradient, whole.gradient, last.gradient);
    ends_.emplace_back(split(block.weight, whole.weight, last.weight), last.weight);
    for (size_t s = 0; s < block.slots.size(); ++s) {
      ends_.emplace_back(split(block.slots[s], whole.slots[s], last.slots[s]), last.slots[s]);
    }
    if (count > rest) blocks_.push_back(std::move(whole));
    blocks_.push_back(std::move(last));
  }

  std::vector<UpdateArgs> blocks_;
  std::vector<std::pair<at::Tensor, at::Tensor>> ends_;  ///< where they belong, and the copies
};

class AdamOptimizer : public Optimizer {
 public:
  AdamOptimizer(const std::string& class_name, const LearningRate& learning_rate,
                const AdamOptions& options)
      : Optimizer(class_name, learning_rate, base_options(options)), options_(options) {
    check_moments(class_name, options);
  }
  Json config() const override {
    Json config = optimizer_config(*this, options_);
    // Keras does not know this key, so it is written only if set.
    if (!options_.epsilon_on_corrected_root) config.erase("epsilon_on_corrected_root");
    return config;
  }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable&) const override {
    if (options_.amsgrad) return {{"momentum"}, {"velocity"}, {"velocity_hat"}};
    return {{"momentum"}, {"velocity"}};
  }

  bool supports_found_inf() const override { return true; }

  void update(const UpdateArgs& args) const override { update_all({args}); }

  void update_all(const std::vector<UpdateArgs>& blocks) const override {
    if (!world_size_invariant()) return update_lists(blocks);
    const PaddedEnds padded(blocks);
    update_lists(padded.blocks());
    padded.write_back();
  }

 private:
  void update_lists(const std::vector<UpdateArgs>& blocks) const {
    std::vector<at::Tensor> weights;
    for (const UpdateArgs& args : blocks) weights.push_back(args.weight);
    for (const std::vector<size_t>& indices : group_by_device_and_dtype(weights))
      update_list(blocks, indices);
  }

  /// Runs ATen's fused kernel once for all blocks of one device and dtype. The kernel adds epsilon
  /// to the square root of the bias-corrected v.
  void update_list(const std::vector<UpdateArgs>& blocks,
                   const std::vector<size_t>& indices) const {
    std::vector<at::Tensor> weights, gradients, momenta, velocities, largest, steps;
    const int64_t step = blocks[0].step;
    const at::Tensor count = at::full({}, static_cast<double>(step),
                                      blocks[indices[0]].weight.options().dtype(at::kFloat));
    for (size_t index : indices) {
      const UpdateArgs& args = blocks[index];
      weights.push_back(args.weight);
      gradients.push_back(args.gradient);
      momenta.push_back(args.slots[0]);
      velocities.push_back(args.slots[1]);
      if (options_.amsgrad) largest.push_back(args.slots[2]);
      steps.push_back(count);
    }
    const at::Tensor skip = skip_on(weights[0].device());
    const double correction = std::sqrt(1 - std::pow(options_.beta_2, step));
    const double epsilon =
        options_.epsilon_on_corrected_root ? options_.epsilon : options_.epsilon / correction;
    at::_fused_adam_(weights, gradients, momenta, velocities, largest, steps,
                     blocks[0].learning_rate, options_.beta_1, options_.beta_2, 0, epsilon,
                     options_.amsgrad, false, /*grad_scale=*/std::nullopt,
                     /*found_inf=*/skip.defined() ? std::optional(skip) : std::nullopt);
  }

  AdamOptions options_;
};

}  // namespace

OptimizerHandle detail::make_adam(const std::string& class_name, const LearningRate& learning_rate,
                                  const AdamOptions& options) {
  return OptimizerHandle(std::make_shared<AdamOptimizer>(class_name, learning_rate, options));
}

Adam::Adam(LearningRate learning_rate, AdamOptions options)
    : OptimizerHandle(make_adam("Adam", learning_rate, options)) {}

}  // namespace tessera
