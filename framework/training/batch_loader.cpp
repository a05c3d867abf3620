#include <tessera/framework/training/batch_loader.hpp>

#include <omp.h>

#include <algorithm>
#include <utility>

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {
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

std::optional<int64_t> available_steps(const DatasetRef& data, int64_t batch_size) {
  if (data.stream()) return data.stream()->steps();
  const int64_t rows = data->size();
  return rows / batch_size + (rows % batch_size != 0);
}

void check_rows(const at::Tensor& tensor, int64_t rows, const std::string& where) {
  if (tensor.defined() && tensor.dim() > 0 && tensor.size(0) == rows) return;
  throw ShapeError(where, str("all tensors of a batch have its ", rows, " rows"),
                   tensor.defined() ? "shape " + to_string(tensor.sizes().vec()) : "undefined",
                   "return one row for every example");
}

void check_batch(const Examples& batch, int64_t rows, const std::string& name) {
  if (batch.placed_x.empty() && batch.x.empty()) check_rows(at::Tensor(), rows, name + ", x");
  for (const at::Tensor& x : batch.x) check_rows(x, rows, name + ", x");
  for (const at::Tensor& y : batch.y) check_rows(y, rows, name + ", y");
  for (const at::Tensor& weight : batch.sample_weight) {
    check_rows(weight, rows, name + ", sample_weight");
  }
}

/// Rows of a stream's batch: those of its first input.
int64_t stream_rows(const Examples& batch) {
  const bool has_rows = !batch.x.empty() && batch.x[0].defined() && batch.x[0].dim() > 0;
  return has_rows ? std::max<int64_t>(batch.x[0].size(0), 1) : 1;
}

/// A dataset that its owner keeps alive.
DatasetRef borrowed(const Dataset& data) {
  return DatasetRef(std::shared_ptr<const Dataset>(&data, [](const Dataset*) {}));
}

}  // namespace

std::optional<int64_t> epoch_steps(const DatasetRef& data, const BatchLoaderOptions& options) {
  check_options(options);
  std::optional<int64_t> steps = available_steps(data, options.batch_size);
  if (options.steps) steps = std::min(*options.steps, steps.value_or(*options.steps));
  const bool inside = options.first_step >= 0 && (!steps || options.first_step <= *steps);
  if (inside) return steps;
  throw ConfigError("first_step",
                    str("an epoch", steps ? str(" of ", *steps, " steps") : std::string(),
                        " begins with one of its steps"),
                    str(options.first_step), "pass the number of steps that are done");
}

BatchLoader::BatchLoader(const Dataset& data, const BatchLoaderOptions& options)
    : BatchLoader(borrowed(data), options) {}

BatchLoader::BatchLoader(const DatasetRef& data, const BatchLoaderOptions& options)
    : data_(data),
      options_(options),
      steps_(epoch_steps(data, options)),
      order_(data.stream() ? 0 : data->size(),
             fold_in(options.seed, static_cast<uint64_t>(options.epoch))),
      reader_([this](const std::stop_token& stop) { read_all(stop); }) {}

std::vector<int64_t> BatchLoader::rows(int64_t step) const {
  const int64_t begin = step * options_.batch_size;
  const int64_t end = std::min(begin + options_.batch_size, order_.size());
  std::vector<int64_t> numbers;
  for (int64_t i = begin; i < end; ++i) numbers.push_back(options_.shuffle ? order_(i) : i);
  return numbers;
}

Examples BatchLoader::read_rows(int64_t step) const {
  const std::vector<int64_t> numbers = rows(step);
  const c10::InferenceMode inference;
  Examples batch = options_.layouts.defined() ? data_->get_placed(numbers, options_.layouts)
                                              : data_->get(numbers);
  const auto all = static_cast<int64_t>(numbers.size());
  check_batch(batch, batch.part ? batch.part->rows.size() : all, data_.name());
  return batch;
}

/// Starts the epoch; the function gives the batch of each step in turn.
std::function<std::optional<Examples>(int64_t)> BatchLoader::start() const {
  if (!data_.stream()) return [this](int64_t step) { return read_rows(step); };
  const BatchFunction stream = data_.stream()->start(options_.epoch);
  if (!stream) {
    throw ConfigError(data_.name(), "the start of an epoch gives a function of batches",
                      "an empty function", "return one that gives the batches");
  }
  for (int64_t step = 0; step < options_.first_step; ++step) stream();
  return [this, stream](int64_t) {
    std::optional<Examples> batch = stream();
    if (batch) check_batch(*batch, stream_rows(*batch), data_.name());
    return batch;
  };
}

void BatchLoader::read_all(const std::stop_token& stop) {
  const c10::InferenceMode inference;
  // ATen would give this thread a pool of its own beside the one that trains. The first call makes
  // ATen set this thread's number, which the second then replaces.
  at::get_num_threads();
  omp_set_num_threads(1);
  std::exception_ptr error;
  try {
    const auto read = start();
    for (int64_t step = options_.first_step; !steps_ || step < *steps_; ++step) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [&] { return !ready_; });
      if (stop.stop_requested()) return;
      lock.unlock();
      std::optional<Examples> batch = read(step);
      if (!batch) break;
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
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ready_ || finished_; });
  if (!ready_ && error_) std::rethrow_exception(error_);
  std::optional<Examples> batch = std::exchange(ready_, std::nullopt);
  changed_.notify_all();
  return batch;
}

Batch pack_batch(Examples&& examples, const LayoutMap& layouts) {
  const auto cut = [&](at::Tensor& tensor, const char* name) {
    const Layout layout = layouts.data_layout(name, tensor.dim());
    if (!examples.part) return pack(std::move(tensor), layout);
    return pack_rows(std::move(tensor), examples.part->rows, examples.part->of, layout);
  };
  Batch batch;
  batch.rows = examples.rows();
  batch.x = std::move(examples.placed_x);
  for (at::Tensor& x : examples.x) batch.x.push_back(cut(x, "x"));
  for (at::Tensor& y : examples.y) batch.y.push_back(cut(y, "y"));
  for (at::Tensor& weight : examples.sample_weight) {
    batch.sample_weight.push_back(cut(weight, "sample_weight"));
  }
  return batch;
}

}  // namespace tessera
