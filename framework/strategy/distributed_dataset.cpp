#include <tessera/framework/strategy/distributed_dataset.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/strategy/internal/function_batches.hpp>
#include <tessera/framework/strategy/strategy.hpp>
#include <tessera/framework/training/internal/data_views.hpp>
#include <tessera/framework/training/internal/fit_data.hpp>

namespace tessera::strategy {

using namespace tessera::detail;

namespace {

/// An epoch of a dataset that all processes share, each reading its own rows.
class SharedBatches final : public DistributedDataset::Batches {
 public:
  SharedBatches(const DatasetHandle& data, const LayoutMap& layouts,
                const DistributeOptions& options, int64_t epoch)
      : data_(data),
        layouts_(layouts),
        loader_(data_, {.batch_size = options.batch_size,
                        .shuffle = options.shuffle,
                        .seed = options.seed,
                        .epoch = epoch,
                        .layouts = layouts}) {}

  std::optional<Batch> next() override {
    std::optional<Examples> examples = loader_.next();
    if (!examples) return std::nullopt;
    return pack_batch(std::move(*examples), layouts_);
  }

 private:
  DatasetHandle data_;
  LayoutMap layouts_;
  BatchLoader loader_;
};

}  // namespace

int64_t InputContext::get_per_replica_batch_size(int64_t global_batch_size) const {
  if (global_batch_size > 0 && global_batch_size % num_replicas_in_sync == 0) {
    return global_batch_size / num_replicas_in_sync;
  }
  throw ConfigError("get_per_replica_batch_size, global_batch_size",
                    str("a multiple of the ", num_replicas_in_sync, " replicas"),
                    str(global_batch_size), "choose a batch size that they divide");
}

DistributedDataset::DistributedDataset(Start start)
    : start_(std::move(start)), epochs_(std::make_shared<int64_t>(0)) {}

DistributedDataset Strategy::experimental_distribute_dataset(
    const DatasetHandle& data, const DistributeOptions& options) const {
  constexpr const char* where = "experimental_distribute_dataset";
  check_data(where, data);
  check_positive(where, "batch_size", options.batch_size);
  return DistributedDataset([data, options, layouts = layouts()](int64_t epoch) {
    return std::make_shared<SharedBatches>(data, layouts, options, epoch);
  });
}

DistributedDataset Strategy::distribute_datasets_from_function(
    const DatasetFunction& function, const DistributeOptions& options) const {
  constexpr const char* where = "distribute_datasets_from_function";
  check_positive(where, "batch_size", options.batch_size);
  const Mesh on = mesh();
  InputContext context = {.num_replicas_in_sync = num_replicas_in_sync()};
  if (!on.is_local()) {
    context.num_input_pipelines = communicator_of(on).size();
    context.input_pipeline_id = communicator_of(on).rank();
  }
  DatasetHandle data;
  collectively(on, where, [&] {
    if (!function) {
      throw ConfigError(where, "a function makes the data", "an empty one", "pass a function");
    }
    data = function(context);
    check_data(where, data);
  });
  return DistributedDataset([data, options, layouts = layouts()](int64_t epoch) {
    return detail::function_batches(data, layouts, options, epoch);
  });
}

}  // namespace tessera::strategy
