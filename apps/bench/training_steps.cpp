#include "apps/bench/training_steps.hpp"

#include <numeric>

#include <tessera/framework/comm/world_size_invariant.hpp>
#include <tessera/framework/training/internal/step_runner.hpp>

#include "apps/bench/timing.hpp"

namespace tessera::bench {

using namespace detail;

const std::vector<std::pair<std::string, BlockPolicy>>& block_policies() {
  static const std::vector<std::pair<std::string, BlockPolicy>> all = {
      {"per_worker", BlockPolicy::per_worker},
      {"per_shard", BlockPolicy::per_shard},
      {"per_device", BlockPolicy::per_device}};
  return all;
}

Examples Batches::next() {
  std::vector<int64_t> rows(static_cast<size_t>(size_));
  std::iota(rows.begin(), rows.end(), count_++ % (data_.size() / size_) * size_);
  return data_.get(rows);
}

TrainingSteps::TrainingSteps(const ModelHandle& model, const LayoutMap& layouts,
                             const TensorDataset& data, int64_t batch_size)
    : model_(model), layouts_(layouts), batches_(data, batch_size) {
  model_.fit(data, {.batch_size = batch_size, .verbose = 0, .steps_per_epoch = 1});
}

double TrainingSteps::step() {
  Examples examples = batches_.next();
  const WorldSizeInvariantScope scope(layouts_.world_size_invariant());
  return 1e3 * seconds_of([&] {
           read_loss(model_->train_step(pack_batch(std::move(examples), layouts_)).loss());
         });
}

TimedWork stepping(const std::shared_ptr<TrainingSteps>& steps) {
  return [steps](int64_t count) {
    std::vector<double> taken;
    for (int64_t i = 0; i < count; ++i) taken.push_back(steps->step());
    return milliseconds(taken);
  };
}

}  // namespace tessera::bench
