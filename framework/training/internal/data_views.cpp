#include <tessera/framework/training/internal/data_views.hpp>

#include <span>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

class RowRange final : public Dataset {
 public:
  RowRange(std::shared_ptr<const Dataset> data, int64_t begin, int64_t end)
      : data_(std::move(data)), begin_(begin), end_(end) {}
  int64_t size() const override { return end_ - begin_; }
  Examples get(std::span<const int64_t> rows) const override { return data_->get(moved(rows)); }
  Examples get_placed(std::span<const int64_t> rows, const LayoutMap& layouts) const override {
    return data_->get_placed(moved(rows), layouts);
  }
  bool concurrent() const override { return data_->concurrent(); }
  std::string name() const override { return data_->name(); }
  std::vector<Shape> input_shapes() const override { return data_->input_shapes(); }

 private:
  std::vector<int64_t> moved(std::span<const int64_t> rows) const {
    std::vector<int64_t> numbers(rows.begin(), rows.end());
    for (int64_t& number : numbers) number += begin_;
    return numbers;
  }

  std::shared_ptr<const Dataset> data_;
  int64_t begin_, end_;
};

void check_no_weights(const Examples& batch, const std::string& argument) {
  if (batch.sample_weight.empty()) return;
  throw ConfigError(argument, "data have one kind of weights", "data with sample weights",
                    "leave out " + argument);
}

/// Returns the numbers of the rows that a batch holds; `rows`: those of the global batch.
std::span<const int64_t> held_rows(const Examples& batch, std::span<const int64_t> rows) {
  if (!batch.part) return rows;
  return rows.subspan(size_t(batch.part->rows.lo), size_t(batch.part->rows.size()));
}

class WithSampleWeight final : public Dataset {
 public:
  WithSampleWeight(std::shared_ptr<const Dataset> data, at::Tensor weight)
      : data_(std::move(data)), weight_(std::move(weight)) {}
  int64_t size() const override { return data_->size(); }
  Examples get(std::span<const int64_t> rows) const override {
    return weighted_rows(data_->get(rows), rows);
  }
  Examples get_placed(std::span<const int64_t> rows, const LayoutMap& layouts) const override {
    return weighted_rows(data_->get_placed(rows, layouts), rows);
  }
  bool concurrent() const override { return data_->concurrent(); }
  std::string name() const override { return data_->name(); }
  std::vector<Shape> input_shapes() const override { return data_->input_shapes(); }

 private:
  Examples weighted_rows(Examples batch, std::span<const int64_t> rows) const {
    check_no_weights(batch, "sample_weight");
    rows = held_rows(batch, rows);
    const at::Tensor numbers = at::tensor(at::ArrayRef<int64_t>(rows.data(), rows.size()));
    batch.sample_weight = {weight_.index_select(0, numbers)};
    return batch;
  }

  std::shared_ptr<const Dataset> data_;
  at::Tensor weight_;
};

/// The weights of classes, and whether labels of several columns are class ids, not one-hot.
struct LabelWeight {
  ClassWeight of_class;
  bool of_ids = false;
};

/// Throws ConfigError unless each label has one largest number, which is at most 1: one-hot labels
/// or probabilities, not several labels a row. `rows`: their numbers in the data, if known.
void check_one_class(const at::Tensor& y, std::span<const int64_t> rows) {
  const at::Tensor largest = y.amax(-1, true);
  const at::Tensor bad = y.eq(largest).sum(-1).ne(1).logical_or_(largest.squeeze(-1).gt(1));
  if (!bad.any().item<bool>()) return;
  const int64_t labels_of_row = bad.numel() / bad.size(0);
  const int64_t row = bad.to(at::kByte).argmax().item<int64_t>() / labels_of_row;
  const std::string where =
      rows.empty() ? str("row ", row, " of a batch") : str("row ", rows[static_cast<size_t>(row)]);
  throw ConfigError("class_weight", "each label has one class, as a class id or one-hot",
                    str(where, " without one largest label of at most 1"), "use sample_weight");
}

/// Returns the class of each label, (rows) or (rows, steps): class ids as they are, the argmax of
/// one-hot labels. `are_ids`: whether labels of several columns are class ids.
at::Tensor classes(at::Tensor y, bool are_ids, std::span<const int64_t> rows) {
  if (y.dim() > 1 && y.size(-1) == 1) {
    y = y.squeeze(-1);
  } else if (y.dim() > 1 && !are_ids) {
    y = y.to(at::kDouble);
    if (y.numel() > 0) check_one_class(y, rows);
    y = y.argmax(-1);
  }
  return y.to(at::kDouble).round().to(at::kLong).contiguous();
}

/// Returns the batch with weights; `rows`: the numbers of its rows in the data, if known.
Examples weighted(Examples batch, const LabelWeight& class_weight,
                  std::span<const int64_t> rows = {}) {
  check_no_weights(batch, "class_weight");
  if (batch.y.size() != 1) {
    throw ConfigError("class_weight", "the model has a single output",
                      str(batch.y.size(), " labels"), "use sample_weight");
  }
  const at::Tensor numbers = classes(batch.y[0], class_weight.of_ids, held_rows(batch, rows));
  at::Tensor weight = at::ones(numbers.sizes());
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    const auto found = class_weight.of_class.find(numbers.const_data_ptr<int64_t>()[i]);
    if (found != class_weight.of_class.end()) {
      weight.mutable_data_ptr<float>()[i] = static_cast<float>(found->second);
    }
  }
  batch.sample_weight = {weight};
  return batch;
}

class WithClassWeight final : public Dataset {
 public:
  WithClassWeight(std::shared_ptr<const Dataset> data, LabelWeight weight)
      : data_(std::move(data)), weight_(std::move(weight)) {}
  int64_t size() const override { return data_->size(); }
  Examples get(std::span<const int64_t> rows) const override {
    return weighted(data_->get(rows), weight_, rows);
  }
  Examples get_placed(std::span<const int64_t> rows, const LayoutMap& layouts) const override {
    return weighted(data_->get_placed(rows, layouts), weight_, rows);
  }
  bool concurrent() const override { return data_->concurrent(); }
  std::string name() const override { return data_->name(); }
  std::vector<Shape> input_shapes() const override { return data_->input_shapes(); }

 private:
  std::shared_ptr<const Dataset> data_;
  LabelWeight weight_;
};

class StreamWithClassWeight final : public StreamDataset {
 public:
  StreamWithClassWeight(std::shared_ptr<const StreamDataset> data, LabelWeight weight)
      : data_(std::move(data)), weight_(std::move(weight)) {}
  BatchFunction start(int64_t epoch) const override { return start_at(epoch, 0, {}); }
  BatchFunction start_at(int64_t epoch, int64_t first_step,
                         const LayoutMap& layouts) const override {
    return [next = data_->start_at(epoch, first_step, layouts),
            weight = weight_]() -> std::optional<Examples> {
      std::optional<Examples> batch = next();
      if (!batch) return std::nullopt;
      return weighted(std::move(*batch), weight);
    };
  }
  std::optional<int64_t> steps() const override { return data_->steps(); }
  bool endless() const override { return data_->endless(); }
  std::string name() const override { return data_->name(); }
  std::vector<Shape> input_shapes() const override { return data_->input_shapes(); }

 private:
  std::shared_ptr<const StreamDataset> data_;
  LabelWeight weight_;
};

class ContinuedStream final : public StreamDataset {
 public:
  explicit ContinuedStream(std::shared_ptr<const StreamDataset> data)
      : data_(std::move(data)), reading_(std::make_shared<Reading>()) {}
  BatchFunction start(int64_t epoch) const override { return start_at(epoch, 0, {}); }
  BatchFunction start_at(int64_t epoch, int64_t first_step,
                         const LayoutMap& layouts) const override {
    Reading& reading = *reading_;
    if (!reading.next || reading.epoch != epoch || reading.step != first_step) {
      reading = {data_->start_at(epoch, first_step, layouts), epoch, first_step};
    }
    if (!reading.next) return {};
    return [reading = reading_]() -> std::optional<Examples> {
      std::optional<Examples> batch = reading->next();
      if (batch) ++reading->step;
      return batch;
    };
  }
  std::optional<int64_t> steps() const override { return data_->steps(); }
  bool endless() const override { return data_->endless(); }
  std::string name() const override { return data_->name(); }
  std::vector<Shape> input_shapes() const override { return data_->input_shapes(); }

 private:
  /// The batches of a pass; the next one is that of `step`.
  struct Reading {
    BatchFunction next;
    int64_t epoch = 0, step = 0;
  };

  std::shared_ptr<const StreamDataset> data_;
  std::shared_ptr<Reading> reading_;
};

}  // namespace

DatasetHandle continued(const DatasetHandle& data) {
  return data.stream() ? DatasetHandle(ContinuedStream(data.stream())) : data;
}

DatasetHandle row_range(const std::shared_ptr<const Dataset>& data, int64_t begin, int64_t end) {
  return RowRange(data, begin, end);
}

DatasetHandle with_sample_weight(const DatasetHandle& data, const at::Tensor& sample_weight,
                                 const std::string& caller) {
  const std::string where = caller + ", sample_weight";
  const auto& rows = data.rows(where);
  if (sample_weight.dim() > 0 && sample_weight.size(0) == rows->size()) {
    return WithSampleWeight(rows, sample_weight);
  }
  throw ConfigError(where, str("there is one weight for each of the ", rows->size(), " rows"),
                    "shape " + to_string(sample_weight.sizes().vec()), "pass one for every row");
}

DatasetHandle with_class_weight(const DatasetHandle& data, const ClassWeight& class_weight,
                                bool labels_are_ids) {
  const LabelWeight weight{class_weight, labels_are_ids};
  if (data.stream()) return StreamWithClassWeight(data.stream(), weight);
  return WithClassWeight(data.rows("class_weight"), weight);
}

}  // namespace tessera::detail
