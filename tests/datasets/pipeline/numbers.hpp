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

/// Row i is (10 i, 10 i + 1) with label i. Counts how often each row is read, copies together.
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

  /// How often each row that was read was read, and from now on none was.
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

/// The labels of a batch or of a row.
inline std::vector<int64_t> labels_of(const Examples& element) {
  const at::Tensor labels = element.y.at(0).reshape({-1}).contiguous();
  const int64_t* first = labels.const_data_ptr<int64_t>();
  return {first, first + labels.numel()};
}

using Labels = std::vector<std::vector<int64_t>>;

/// The labels of the elements of an epoch.
inline Labels epoch_labels(const DataPipeline& data, int64_t epoch = 0, int64_t most = 1000) {
  const BatchFunction next = data.start(epoch);
  Labels all;
  for (int64_t i = 0; i < most; ++i) {
    const std::optional<Examples> element = next();
    if (!element) break;
    all.push_back(labels_of(*element));
  }
  return all;
}

/// The labels of rows, one for each element.
inline std::vector<int64_t> row_labels(const DataPipeline& data, int64_t epoch = 0,
                                       int64_t most = 1000) {
  std::vector<int64_t> all;
  for (const auto& labels : epoch_labels(data, epoch, most)) {
    all.insert(all.end(), labels.begin(), labels.end());
  }
  return all;
}

/// All bytes of an epoch's batches from a step on, as one text each, with their shapes.
inline std::vector<std::string> epoch_bytes(const DataPipeline& data, int64_t epoch,
                                            int64_t first_step = 0, const LayoutMap& layouts = {}) {
  BatchLoader loader(data, {.epoch = epoch, .first_step = first_step, .layouts = layouts});
  std::vector<std::string> all;
  while (const std::optional<Examples> batch = loader.next()) {
    std::string bytes;
    for (const auto* tensors : {&batch->x, &batch->y, &batch->sample_weight}) {
      for (const at::Tensor& tensor : *tensors) {
        const at::Tensor whole = tensor.contiguous();
        bytes += to_string(whole.sizes().vec());
        bytes.append(static_cast<const char*>(whole.const_data_ptr()), whole.nbytes());
      }
    }
    all.push_back(std::move(bytes));
  }
  return all;
}

/// Adds numbers to the inputs that follow from the seed.
inline Examples with_noise(Examples element, Seed seed) {
  element.x[0] = element.x[0] + (seed.a & 0xffff);
  return element;
}

/// A text of label i is 1 + i % 7 numbers long, each i.
inline Examples as_text(Examples row) {
  const int64_t label = row.y[0].item<int64_t>();
  row.x[0] = at::full({1 + label % 7}, label, at::kLong);
  return row;
}

inline int64_t text_length(const Examples& row) { return row.x[0].size(0); }

inline bool is_odd(const Examples& row) { return row.y[0].item<int64_t>() % 2 == 1; }

}  // namespace tessera::test
