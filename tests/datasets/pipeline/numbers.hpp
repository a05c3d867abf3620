#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/datasets/pipeline/data_pipeline.hpp>
#include <tessera/framework/data/batch_loader.hpp>

namespace tessera::test {

/// Row i is (10 i, 10 i + 1) with label i. Counts how often each row is read; copies share the
/// counts.
class NumberRows final : public Dataset {
 public:
  explicit NumberRows(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  Examples get(std::span<const int64_t> rows) const override {
    const at::Tensor label =
        at::tensor(at::ArrayRef<int64_t>(rows.data(), rows.size()), at::kLong).clone();
    const std::lock_guard lock(seen_->mutex);
    for (const int64_t row : rows) ++seen_->reads[row];
    return {.x = {at::stack({label * 10, label * 10 + 1}, 1)}, .y = {label}};
  }
  bool concurrent() const override { return true; }
  std::string name() const override { return "numbers"; }
  std::vector<Shape> input_shapes() const override { return {{2}}; }

  /// Returns how often each row was read and resets the counts.
  std::map<int64_t, int64_t> take_reads() const {
    const std::lock_guard lock(seen_->mutex);
    return std::exchange(seen_->reads, {});
  }

 private:
  struct Seen {
    std::mutex mutex;
    std::map<int64_t, int64_t> reads;
  };
  int64_t size_;
  std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
};

/// Returns the labels of a batch or of a row.
inline std::vector<int64_t> labels_of(const Examples& element) {
  const at::Tensor labels = element.y.at(0).reshape({-1}).contiguous();
  const int64_t* first = labels.const_data_ptr<int64_t>();
  return {first, first + labels.numel()};
}

using Labels = std::vector<std::vector<int64_t>>;

/// Returns the labels of an epoch's elements, at most `max_elements`.
inline Labels epoch_labels(const DataPipeline& data, int64_t epoch = 0,
                           int64_t max_elements = 1000) {
  const BatchFunction next = data.start(epoch);
  Labels all;
  for (int64_t i = 0; i < max_elements; ++i) {
    const std::optional<Examples> element = next();
    if (!element) break;
    all.push_back(labels_of(*element));
  }
  return all;
}

/// Returns the labels of an epoch's rows in one list.
inline std::vector<int64_t> row_labels(const DataPipeline& data, int64_t epoch = 0,
                                       int64_t max_elements = 1000) {
  std::vector<int64_t> all;
  for (const auto& labels : epoch_labels(data, epoch, max_elements)) {
    all.insert(all.end(), labels.begin(), labels.end());
  }
  return all;
}

/// Returns the shapes and bytes of an epoch's batches from a step on, as one text each.
inline std::vector<std::string> epoch_bytes(const DataPipeline& data, int64_t epoch,
                                            int64_t first_step = 0, const LayoutMap& layouts = {}) {
  BatchLoader loader(data, {.epoch = epoch, .first_step = first_step, .layouts = layouts});
  std::vector<std::string> all;
  while (const std::optional<Examples> batch = loader.next()) {
    std::string bytes;
    for (const auto* tensors : {&batch->x, &batch->y, &batch->sample_weight}) {
      for (const at::Tensor& tensor : *tensors) {
        const at::Tensor contiguous_tensor = tensor.resolve_conj().resolve_neg().contiguous();
        bytes += to_string(contiguous_tensor.sizes().vec());
        bytes.append(static_cast<const char*>(contiguous_tensor.const_data_ptr()),
                     contiguous_tensor.nbytes());
      }
    }
    all.push_back(std::move(bytes));
  }
  return all;
}

/// Adds a number derived from the seed to the inputs.
inline Examples with_noise(Examples element, Seed seed) {
  element.x[0] = element.x[0] + (seed.a & 0xffff);
  return element;
}

/// Turns a row with label i into a text of 1 + i % 7 tokens, each of them i.
inline Examples as_text(Examples row) {
  const int64_t label = row.y[0].item<int64_t>();
  row.x[0] = at::full({1 + label % 7}, label, at::kLong);
  return row;
}

inline int64_t text_length(const Examples& row) { return row.x[0].size(0); }

inline bool is_odd(const Examples& row) { return row.y[0].item<int64_t>() % 2 == 1; }

}  // namespace tessera::test
