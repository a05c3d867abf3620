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

int64_t count_steps(int64_t rows, const BatchLoaderOptions& options) {
  if (options.batch_size < 1) {
    throw ConfigError("batch_size", "a batch has at least one row", str(options.batch_size),
                      "pass a batch size of 1 or more");
  }
  if (options.steps && *options.steps < 0) {
    throw ConfigError("steps", "the number of steps is not negative", str(*options.steps),
                      "leave it out for all of the data");
  }
  const int64_t available = rows / options.batch_size + (rows % options.batch_size != 0);
  const int64_t steps = std::min(options.steps.value_or(available), available);
  if (options.first_step < 0 || options.first_step > steps) {
    throw ConfigError("first_step", str("an epoch of ", steps, " steps begins with one of them"),
                      str(options.first_step), "pass the number of steps that are done");
  }
  return steps;
}

void check_rows(const at::Tensor& tensor, int64_t rows, const std::string& where) {
  if (tensor.defined() && tensor.dim() > 0 && tensor.size(0) == rows) return;
  throw ShapeError(where, str("Dataset::get gives the ", rows, " rows that it was asked for"),
                   tensor.defined() ? "shape " + to_string(tensor.sizes().vec()) : "undefined",
                   "return one row for every number");
}

void check_batch(const Examples& batch, int64_t rows, const std::string& name) {
  if (batch.x.empty()) check_rows(at::Tensor(), rows, name + ", x");
  for (const at::Tensor& x : batch.x) check_rows(x, rows, name + ", x");
  if (batch.y.defined()) check_rows(batch.y, rows, name + ", y");
  if (batch.sample_weight.defined()) {
    check_rows(batch.sample_weight, rows, name + ", sample_weight");
  }
}

}  // namespace

BatchLoader::BatchLoader(const Dataset& data, const BatchLoaderOptions& options)
    : data_(data),
      options_(options),
      steps_(count_steps(data.size(), options)),
      order_(data.size(), fold_in(options.seed, static_cast<uint64_t>(options.epoch))),
      reader_([this](const std::stop_token& stop) { read_all(stop); }) {}

std::vector<int64_t> BatchLoader::rows(int64_t step) const {
  const int64_t begin = step * options_.batch_size;
  const int64_t end = std::min(begin + options_.batch_size, order_.size());
  std::vector<int64_t> numbers;
  for (int64_t i = begin; i < end; ++i) numbers.push_back(options_.shuffle ? order_(i) : i);
  return numbers;
}

Examples BatchLoader::read(int64_t step) const {
  const std::vector<int64_t> numbers = rows(step);
  Examples batch = data_.get(numbers);
  check_batch(batch, static_cast<int64_t>(numbers.size()), data_.name());
  return batch;
}

void BatchLoader::read_all(const std::stop_token& stop) {
  const c10::InferenceMode inference;
  // ATen would give this thread a pool of its own beside the one that trains. The first call makes
  // ATen set this thread's number, which the second then replaces.
  at::get_num_threads();
  omp_set_num_threads(1);
  std::exception_ptr error;
  try {
    for (int64_t step = options_.first_step; step < steps_; ++step) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [&] { return !ready_; });
      if (stop.stop_requested()) return;
      lock.unlock();
      Examples batch = read(step);
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
  const auto cut = [&](at::Tensor& whole, const char* name) {
    const Layout layout = layouts.data_layout(name, whole.dim());
    return pack(std::move(whole), layout);
  };
  Batch batch;
  batch.rows = examples.rows();
  for (at::Tensor& x : examples.x) batch.x.push_back(cut(x, "x"));
  if (examples.y.defined()) batch.y = cut(examples.y, "y");
  if (examples.sample_weight.defined()) {
    batch.sample_weight = cut(examples.sample_weight, "sample_weight");
  }
  return batch;
}

}  // namespace tessera
