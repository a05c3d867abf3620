#include <tessera/framework/data/batch_loader.hpp>

#include <omp.h>

#include <algorithm>
#include <utility>

#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/data/internal/batch_reader.hpp>
#include <tessera/framework/data/internal/pinned_batches.hpp>
#include <tessera/framework/data/internal/prefetcher.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

namespace tessera {

using namespace detail;

namespace {

void check_options(const BatchLoaderOptions& options) {
  if (options.batch_size < 1) {
    throw ConfigError("batch_size", "a batch has at least one row", str(options.batch_size),
                      "pass a batch size of 1 or more");
  }
  if (options.steps && *options.steps < 0) {
    throw ConfigError("steps", "the number of steps is not negative", str(*options.steps),
                      "leave it out for all of the data");
  }
}

std::optional<int64_t> available_steps(const DatasetHandle& data, int64_t batch_size) {
  if (data.stream()) return data.stream()->steps();
  const int64_t rows = data->size();
  return rows / batch_size + (rows % batch_size != 0);
}

/// Moves a batch to pinned memory, from which GPUs copy asynchronously.
void pin(Examples& batch) {
  for (auto* const tensors : {&batch.x, &batch.y, &batch.sample_weight}) {
    for (at::Tensor& tensor : *tensors) tensor = tensor.contiguous().pin_memory();
  }
}

/// Sets the number of threads for loops of this thread. With a mesh of CPUs it is one, since ATen
/// would give this thread a pool of its own beside the training thread's. With GPUs the training
/// thread needs no pool, and one thread copies too slowly: at 10 GB/s, images of a batch take
/// longer than the GPU's step.
void use_reader_threads(bool on_gpu) {
  constexpr int max_threads = 4;
  // The first call makes ATen set this thread's number of threads; the second one replaces it.
  const int all = at::get_num_threads();
  omp_set_num_threads(on_gpu ? std::min(all, max_threads) : 1);
}

/// Returns a handle to a dataset that its owner keeps alive.
DatasetHandle non_owning_handle(const Dataset& data) {
  return DatasetHandle(std::shared_ptr<const Dataset>(&data, [](const Dataset*) {}));
}

/// Returns a function that reads the batches of an epoch on the calling thread.
Prefetcher::Make reader_of(const DatasetHandle& data, const BatchLoaderOptions& options,
                           const std::optional<int64_t>& steps) {
  const auto reader = std::make_shared<BatchReader>(data, options);
  const bool on_gpu = options.layouts.defined() && on_gpus(options.layouts.mesh());
  // Pinning needs loaded GPUs.
  if (on_gpu) load_gpus();
  use_reader_threads(on_gpu);
  const auto scope = std::make_shared<PinnedBatchesScope>(/*pinned=*/on_gpu);
  return [reader, on_gpu, scope, epoch = options.epoch,
          steps](int64_t step) -> std::optional<Examples> {
    if (steps && step >= *steps) return std::nullopt;
    std::optional<Examples> batch;
    {
      const ProfileSpan span(SpanKind::data, "read batch");
      batch = reader->read(epoch, step);
    }
    if (batch && on_gpu) pin(*batch);
    return batch;
  };
}

}  // namespace

std::optional<int64_t> detail::epoch_steps(const DatasetHandle& data,
                                           const BatchLoaderOptions& options) {
  check_options(options);
  std::optional<int64_t> steps = available_steps(data, options.batch_size);
  if (options.steps) steps = std::min(*options.steps, steps.value_or(*options.steps));
  const bool inside = options.first_step >= 0 && (!steps || options.first_step <= *steps);
  if (inside) return steps;
  throw ConfigError("first_step",
                    str("an epoch", steps ? str(" of ", *steps, " steps") : std::string(),
                        " begins with one of its steps"),
                    str(options.first_step), "pass the number of steps done");
}

BatchLoader::BatchLoader(const Dataset& data, const BatchLoaderOptions& options)
    : BatchLoader(non_owning_handle(data), options) {}

BatchLoader::BatchLoader(const DatasetHandle& data, const BatchLoaderOptions& options)
    : data_(data),
      options_(options),
      steps_(epoch_steps(data, options)),
      batches_(std::make_shared<Prefetcher>([this] { return reader_of(data_, options_, steps_); },
                                            options.first_step, 1, 1)) {}

std::vector<int64_t> BatchLoader::rows(int64_t step) const {
  return BatchRows(data_->size(), options_).of(step);
}

std::optional<Examples> BatchLoader::next() {
  const ProfileSpan span(SpanKind::wait, "next batch");
  return batches_->next();
}

Batch pack_batch(Examples&& examples, const LayoutMap& layouts) {
  const ProfileSpan span(SpanKind::data, "pack_batch");
  const auto shard = [&](at::Tensor& tensor, const char* name, size_t index) {
    const Layout layout = layouts.data_layout(name, tensor.dim(), index);
    if (!examples.part) return pack(std::move(tensor), layout);
    return pack_rows(std::move(tensor), examples.part->rows, examples.part->of, layout);
  };
  Batch batch;
  batch.rows = examples.rows();
  batch.x = std::move(examples.placed_x);
  for (at::Tensor& x : examples.x) batch.x.push_back(shard(x, "x", batch.x.size()));
  for (at::Tensor& y : examples.y) batch.y.push_back(shard(y, "y", batch.y.size()));
  for (at::Tensor& weight : examples.sample_weight) {
    batch.sample_weight.push_back(shard(weight, "sample_weight", batch.sample_weight.size()));
  }
  for (const auto* values : {&batch.x, &batch.y, &batch.sample_weight}) {
    for (const DTensor& value : *values) DeviceMemory::label(value, MemoryUse::batch);
  }
  return batch;
}

}  // namespace tessera
