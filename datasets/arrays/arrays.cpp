#include <tessera/datasets/arrays/arrays.hpp>

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

using namespace detail;

namespace {

void check_side(const std::string& option, const std::string& side) {
  if (side == "pre" || side == "post") return;
  throw ConfigError("pad_sequences", option + " is \"pre\" or \"post\"", in_quotes(side),
                    "pass one of them");
}

/// A range of a dataset's rows, in stored or shuffled order.
class DatasetSlice final : public Dataset {
 public:
  DatasetSlice(std::shared_ptr<const Dataset> data, std::shared_ptr<const Permutation> order,
               int64_t begin, int64_t size)
      : data_(std::move(data)), order_(std::move(order)), begin_(begin), size_(size) {}
  int64_t size() const override { return size_; }
  Examples get(std::span<const int64_t> rows) const override {
    return data_->get(source_rows(rows));
  }
  Examples get_placed(std::span<const int64_t> rows, const LayoutMap& layouts) const override {
    return data_->get_placed(source_rows(rows), layouts);
  }
  bool concurrent() const override { return data_->concurrent(); }
  std::string name() const override { return data_->name(); }
  std::vector<Shape> input_shapes() const override { return data_->input_shapes(); }

 private:
  std::vector<int64_t> source_rows(std::span<const int64_t> rows) const {
    std::vector<int64_t> numbers;
    for (const int64_t row : rows) {
      if (row < 0 || row >= size_) {
        throw ShapeError(name(), str("a row number lies in [0, ", size_, ")"), str(row),
                         "ask for rows that the dataset has");
      }
      numbers.push_back(order_ ? (*order_)(begin_ + row) : begin_ + row);
    }
    return numbers;
  }

  std::shared_ptr<const Dataset> data_;
  std::shared_ptr<const Permutation> order_;  ///< shuffled order; null: stored order
  int64_t begin_, size_;
};

/// The positions of windows over a series.
struct Windows {
  int64_t first = 0, count = 0, stride = 1, length = 0, rate = 1;

  int64_t begin(int64_t window) const { return first + window * stride; }
};

class WindowRows final : public Dataset {
 public:
  WindowRows(at::Tensor data, at::Tensor targets, const Windows& windows)
      : data_(std::move(data)), targets_(std::move(targets)), windows_(windows) {}

  int64_t size() const override { return windows_.count; }
  Examples get(std::span<const int64_t> rows) const override {
    std::vector<int64_t> steps, begins;
    for (const int64_t row : rows) {
      if (row < 0 || row >= size()) {
        throw ShapeError(name(), str("a window's number lies in [0, ", size(), ")"), str(row),
                         "ask for windows that there are");
      }
      begins.push_back(windows_.begin(row));
      for (int64_t i = 0; i < windows_.length; ++i) {
        steps.push_back(begins.back() + i * windows_.rate);
      }
    }
    Shape shape = data_.sizes().vec();
    shape[0] = windows_.length;
    shape.insert(shape.begin(), std::ssize(rows));
    Examples batch{.x = {data_.index_select(0, at::tensor(steps, at::kLong)).reshape(shape)}};
    if (targets_.defined()) {
      batch.y = {targets_.index_select(0, at::tensor(begins, at::kLong))};
    }
    return batch;
  }
  bool concurrent() const override { return true; }
  std::string name() const override { return "timeseries"; }
  std::vector<Shape> input_shapes() const override {
    Shape shape = data_.sizes().vec();
    shape[0] = windows_.length;
    return {shape};
  }

 private:
  at::Tensor data_, targets_;
  Windows windows_;
};

void check_window_option(const std::string& option, int64_t value, int64_t least, int64_t end) {
  if (value >= least && value < end) return;
  throw ConfigError("timeseries_dataset_from_array",
                    str(option, " lies in [", least, ", ", end, ")"), str(value),
                    "pass another, or longer series");
}

Windows windows_of(const at::Tensor& data, const at::Tensor& targets, int64_t length,
                   const TimeseriesDatasetOptions& options) {
  const std::string where = "timeseries_dataset_from_array";
  if (!data.defined() || data.dim() == 0 || (targets.defined() && targets.dim() == 0)) {
    throw ShapeError(where, "axis 0 of a series is the time", "no axis", "pass series");
  }
  const int64_t steps = data.size(0);
  const int64_t start = options.start_index.value_or(0);
  if (options.start_index) check_window_option("start_index", start, 0, steps);
  if (options.end_index) check_window_option("end_index", *options.end_index, start + 1, steps);
  check_window_option("sampling_rate", options.sampling_rate, 1, steps);
  check_window_option("sequence_stride", options.sequence_stride, 1, steps);
  if (length < 1) {
    throw ConfigError(where, "sequence_length is at least 1", str(length), "pass more");
  }
  const int64_t end = options.end_index.value_or(steps);
  int64_t begins = end - start - (length - 1) * options.sampling_rate;
  if (targets.defined()) begins = std::min(begins, targets.size(0));
  if (begins < 1) {
    throw ConfigError(where, "a window fits into the series",
                      str(length, " steps, ", options.sampling_rate, " apart, of ", end - start),
                      "pass a shorter sequence_length");
  }
  if (targets.defined() && start + begins > targets.size(0)) {
    throw ConfigError(where, str("targets have a step for each window, up to ", start + begins),
                      str(targets.size(0), " steps"), "pass as many targets as data");
  }
  const int64_t stride = options.sequence_stride;
  return {start, (begins + stride - 1) / stride, stride, length, options.sampling_rate};
}

}  // namespace

int64_t SplitSize::of(int64_t total, const std::string& name) const {
  const int64_t rows =
      // Rounds half to even, as Python does.
      rows_ ? *rows_ : static_cast<int64_t>(std::nearbyint(fraction_ * static_cast<double>(total)));
  const bool fits =
      rows_ ? *rows_ > 0 && *rows_ < total : fraction_ > 0 && fraction_ < 1 && rows > 0;
  if (fits) return rows;
  throw ConfigError("split_dataset",
                    str(name, " is a number of rows below ", total, ", or a part in (0, 1)"),
                    rows_ ? str(*rows_) : str(fraction_), "leave rows on both sides");
}

at::Tensor pad_sequences(std::span<const at::Tensor> sequences,
                         const PadSequencesOptions& options) {
  check_side("padding", options.padding);
  check_side("truncating", options.truncating);
  if (options.maxlen ? *options.maxlen < 1 : sequences.empty()) {
    throw ConfigError(
        "pad_sequences",
        options.maxlen ? "maxlen is at least 1" : "without maxlen there are sequences",
        options.maxlen ? str(*options.maxlen) : "none", "pass maxlen");
  }
  int64_t length = 0;
  const at::Tensor* first = nullptr;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const at::Tensor& sequence = sequences[i];
    if (!sequence.defined() || sequence.dim() == 0) {
      throw ShapeError(str("pad_sequences, sequence ", i), "a sequence has an axis", "none",
                       "pass tensors that have one");
    }
    length = std::max(length, sequence.size(0));
    if (first == nullptr && sequence.size(0) > 0) first = &sequence;
  }
  Shape shape = {std::ssize(sequences), options.maxlen.value_or(length)};
  if (first != nullptr) shape.insert(shape.end(), first->sizes().begin() + 1, first->sizes().end());
  at::Tensor all = at::full(shape, options.value, options.dtype);
  for (size_t i = 0; i < sequences.size(); ++i) {
    at::Tensor sequence = sequences[i];
    const int64_t own = std::min(sequence.size(0), shape[1]);
    if (own == 0) continue;
    if (sequence.sizes().slice(1) != first->sizes().slice(1)) {
      throw ShapeError(str("pad_sequences, sequence ", i), "sequences differ in axis 0 only",
                       str("shapes ", to_string(first->sizes().vec()), " and ",
                           to_string(sequence.sizes().vec())),
                       "make their other axes equal");
    }
    sequence = sequence.narrow(0, options.truncating == "pre" ? sequence.size(0) - own : 0, own);
    all[static_cast<int64_t>(i)]
        .narrow(0, options.padding == "pre" ? shape[1] - own : 0, own)
        .copy_(sequence);
  }
  return all;
}

at::Tensor pad_sequences(const std::vector<std::vector<int64_t>>& sequences,
                         const PadSequencesOptions& options) {
  std::vector<at::Tensor> tensors;
  for (const std::vector<int64_t>& sequence : sequences) {
    tensors.push_back(at::tensor(sequence, at::kLong));
  }
  return pad_sequences(std::span<const at::Tensor>(tensors), options);
}

at::Tensor to_categorical(const at::Tensor& x, std::optional<int64_t> num_classes) {
  Shape shape = x.sizes().vec();
  if (shape.size() > 1 && shape.back() == 1) shape.pop_back();
  const at::Tensor numbers = x.to(at::kCPU, at::kLong).reshape({-1});
  if (numbers.numel() == 0 && num_classes.value_or(0) == 0) {
    throw ConfigError("to_categorical", "without num_classes there are class indices", "none",
                      "pass num_classes");
  }
  const bool has_num_classes = num_classes.value_or(0) != 0;
  const int64_t classes = has_num_classes ? *num_classes : numbers.max().item<int64_t>() + 1;
  if (numbers.numel() > 0) {
    const int64_t min_class = numbers.min().item<int64_t>(),
                  max_class = numbers.max().item<int64_t>();
    if (min_class < 0 || max_class >= classes) {
      throw ConfigError("to_categorical", str("classes lie in [0, ", classes, ")"),
                        str(min_class < 0 ? min_class : max_class), "pass a larger num_classes");
    }
  }
  shape.push_back(classes);
  return at::zeros({numbers.numel(), classes}, at::kDouble)
      .scatter_(1, numbers.unsqueeze(1), 1)
      .reshape(shape);
}

std::pair<DatasetHandle, DatasetHandle> split_dataset(const DatasetHandle& data,
                                                      const SplitDatasetOptions& options) {
  const auto& rows = data.rows("split_dataset");
  const int64_t total = rows->size();
  if (!options.left_size && !options.right_size) {
    throw ConfigError("split_dataset", "a size is given", "none", "pass left_size or right_size");
  }
  const auto requested_rows = [&](const std::optional<SplitSize>& size, const char* name) {
    return size ? std::optional(size->of(total, name)) : std::nullopt;
  };
  const std::optional<int64_t> left_rows = requested_rows(options.left_size, "left_size");
  const std::optional<int64_t> right_rows = requested_rows(options.right_size, "right_size");
  const int64_t left = left_rows ? *left_rows : total - *right_rows;
  const int64_t right = right_rows ? *right_rows : total - *left_rows;
  if (left + right > total || left < 1 || right < 1) {
    throw ConfigError("split_dataset", str("both sides have some of the ", total, " rows"),
                      str(left, " and ", right), "pass smaller sizes");
  }
  std::shared_ptr<const Permutation> order;
  if (options.shuffle) {
    order = std::make_shared<Permutation>(total, options.seed.value_or(Seed{global_seed(), 0}));
  }
  return {DatasetSlice(rows, order, 0, left), DatasetSlice(rows, order, total - right, right)};
}

DataPipeline timeseries_dataset_from_array(const at::Tensor& data, const at::Tensor& targets,
                                           int64_t sequence_length,
                                           const TimeseriesDatasetOptions& options) {
  const Windows windows = windows_of(data, targets, sequence_length, options);
  DataPipeline pipeline = DatasetHandle(WindowRows(data, targets, windows));
  if (options.shuffle) pipeline = pipeline.shuffle({.seed = options.seed});
  return options.batch_size ? pipeline.batch(*options.batch_size) : pipeline;
}

}  // namespace tessera
