#include <tessera/framework/parameter_server/worker/worker_data.hpp>

#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {

using namespace strategy;

struct WorkerData::Reading {
  int64_t iteration = 0;
  DatasetHandle data;
  PerWorkerOptions options;
  Seed seed;
  int64_t epoch = 0;
  std::optional<BatchLoader> loader;

  void begin_epoch() {
    loader.emplace(data, BatchLoaderOptions{.batch_size = options.batch_size,
                                            .shuffle = options.shuffle && !data.stream(),
                                            .seed = seed,
                                            .epoch = epoch++});
  }
};

WorkerData::WorkerData(const InputContext& context, const LayoutMap& layouts)
    : context_(context), layouts_(layouts) {}
WorkerData::~WorkerData() = default;

std::optional<Batch> WorkerData::next(const PerWorkerDataset& of,
                                      const RegisteredDataset& registered) {
  std::unique_ptr<Reading>& reading = reading_[of.name];
  if (reading && reading->iteration > of.iteration) {
    throw StateError(str("dataset ", in_quotes(of.name)),
                     "closures must use the latest one from create_per_worker_dataset",
                     str("iteration ", of.iteration, " after ", reading->iteration),
                     "to read the data twice at the same time, register them under two names");
  }
  if (!reading || reading->iteration < of.iteration) {
    reading.reset();
    const Seed seed = fold_in(fold_in({}, static_cast<uint64_t>(context_.input_pipeline_id)),
                              static_cast<uint64_t>(of.iteration));
    auto fresh = std::make_unique<Reading>();
    fresh->iteration = of.iteration;
    fresh->data = registered.function(context_);
    fresh->options = registered.options;
    fresh->seed = seed;
    fresh->begin_epoch();
    reading = std::move(fresh);
  }
  std::optional<Examples> batch = reading->loader->next();
  if (!batch && reading->options.repeat) {
    reading->begin_epoch();
    batch = reading->loader->next();
  }
  if (!batch) return std::nullopt;
  return pack_batch(std::move(*batch), layouts_);
}

}  // namespace tessera::detail
