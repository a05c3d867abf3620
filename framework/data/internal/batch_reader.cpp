#include <tessera/framework/data/internal/batch_reader.hpp>

#include <algorithm>
#include <utility>

#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {
namespace {

void check_rows(const at::Tensor& tensor, int64_t rows, const std::string& where) {
  if (tensor.defined()) check_real(tensor, where);
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

/// Returns the number of rows in a stream's batch: that of its first input.
int64_t stream_rows(const Examples& batch) {
  if (batch.part) return batch.part->rows.size();
  const bool has_rows = !batch.x.empty() && batch.x[0].defined() && batch.x[0].dim() > 0;
  return has_rows ? std::max<int64_t>(batch.x[0].size(0), 1) : 1;
}

}  // namespace

BatchRows::BatchRows(int64_t size, const BatchLoaderOptions& options)
    : size_(size), batch_size_(options.batch_size) {
  if (!options.shuffle) return;
  order_.emplace(size, fold_in(options.seed, static_cast<uint64_t>(options.epoch)));
}

std::vector<int64_t> BatchRows::of(int64_t step) const {
  const int64_t begin = step * batch_size_;
  const int64_t end = std::min(begin + batch_size_, size_);
  std::vector<int64_t> numbers;
  for (int64_t i = begin; i < end; ++i) numbers.push_back(order_ ? (*order_)(i) : i);
  return numbers;
}

std::optional<Examples> BatchReader::read(int64_t epoch, int64_t step) {
  const c10::InferenceMode inference;
  if (data_.stream()) return read_stream(epoch, step);
  return read_rows(epoch, step);
}

Examples BatchReader::read_rows(int64_t epoch, int64_t step) {
  if (!rows_ || options_.epoch != epoch) {
    options_.epoch = epoch;
    rows_.emplace(data_->size(), options_);
  }
  const std::vector<int64_t> numbers = rows_->of(step);
  Examples batch = options_.layouts.defined() ? data_->get_placed(numbers, options_.layouts)
                                              : data_->get(numbers);
  const auto all = static_cast<int64_t>(numbers.size());
  check_batch(batch, batch.part ? batch.part->rows.size() : all, data_.name());
  return batch;
}

std::optional<Examples> BatchReader::read_stream(int64_t epoch, int64_t step) {
  if (!stream_ || epoch != epoch_ || step < next_) {
    stream_ = data_.stream()->start_at(epoch, step, options_.layouts);
    epoch_ = epoch;
    next_ = step;
    ended_ = false;
  }
  if (ended_) return std::nullopt;
  if (!stream_) {
    throw ConfigError(data_.name(), "the start of an epoch gives a function of batches",
                      "an empty function", "return one that gives the batches");
  }
  std::optional<Examples> batch;
  do {
    batch = stream_();
  } while (batch && next_++ < step);
  ended_ = !batch;
  if (batch) check_batch(*batch, stream_rows(*batch), data_.name());
  return batch;
}

}  // namespace tessera::detail
