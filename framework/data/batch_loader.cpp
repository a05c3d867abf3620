#include <tessera/framework/data/batch_loader.hpp>

#include <omp.h>

#include <algorithm>
#include <utility>

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/data/internal/batch_reader.hpp>
#include <tessera/framework/data/internal/pinned_batches.hpp>
#include <tessera/framework/tensor/create.hpp>
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
      reader_([this](const std::stop_token& stop) { read_all(stop); }) {}

std::vector<int64_t> BatchLoader::rows(int64_t step) const {
  return BatchRows(data_->size(), options_).of(step);
}

void BatchLoader::read_all(const std::stop_token& stop) {
  const c10::InferenceMode inference;
  std::exception_ptr error;
  try {
    BatchReader reader(data_, options_);
    const bool on_gpu = options_.layouts.defined() && on_gpus(options_.layouts.mesh());
    // Pinning needs loaded GPUs.
    if (on_gpu) load_gpus();
    use_reader_threads(on_gpu);
    const PinnedBatchesScope scope(/*pinned=*/on_gpu);
    for (int64_t step = options_.first_step; !steps_ || step < *steps_; ++step) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [&] { return !ready_; });
      if (stop.stop_requested()) return;
      lock.unlock();
      std::optional<Examples> batch;
      {
        const ProfileSpan span(SpanKind::data, "read batch");
        batch = reader.read(options_.epoch, step);
      }
      if (!batch) break;
      if (on_gpu) pin(*batch);
      lock.lock();
      ready_ = std::move(batch);
      changed_.notify_all();
    }
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  error_ = error;
  finished_ = true;
  changed_.notify_all();
}

std::optional<Examples> BatchLoader::next() {
  const ProfileSpan span(SpanKind::wait, "next batch");
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ready_ || finished_; });
  if (!ready_ && error_) std::rethrow_exception(error_);
  std::optional<Examples> batch = std::exchange(ready_, std::nullopt);
  // Unlocked first, so that the thread that wakes up finds the mutex free.
  lock.unlock();
  changed_.notify_all();
  return batch;
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
  return batch;
}

}  // namespace tessera
