#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/datasets/pipeline/data_pipeline.hpp>
#include <tessera/framework/base/random.hpp>
#include <tessera/framework/data/dataset.hpp>

namespace tessera {

/// The options of pad_sequences(), with Keras' defaults.
struct PadSequencesOptions {
  std::optional<int64_t> maxlen = std::nullopt;  ///< length of all; absent: of the longest
  at::ScalarType dtype = at::kInt;               ///< of the result
  std::string padding = "pre";                   ///< where short ones are padded: "pre" or "post"
  std::string truncating = "pre";                ///< where long ones are cut: "pre" or "post"
  double value = 0;                              ///< what is padded with
};

/// Sequences as one tensor (sequences, length) (keras.utils.pad_sequences):
///
///     const at::Tensor padded = pad_sequences({{1}, {2, 3}, {4, 5, 6}}, {.maxlen = 2});
///
/// Throws ConfigError for options that do not fit.
at::Tensor pad_sequences(const std::vector<std::vector<int64_t>>& sequences,
                         const PadSequencesOptions& options = {});
/// The same of tensors that differ in axis 0 only. Throws ShapeError for others.
at::Tensor pad_sequences(std::span<const at::Tensor> sequences,
                         const PadSequencesOptions& options = {});

/// Numbers of classes as rows that have 1 at the class, in float64, along a new last axis, or in
/// place of a last axis of one (keras.utils.to_categorical). Without `num_classes`, or with 0,
/// there are as many as the largest number says. Throws ConfigError for a class that there is not.
at::Tensor to_categorical(const at::Tensor& x, std::optional<int64_t> num_classes = std::nullopt);

namespace detail {

/// Rows of one side of a split: so many, or such a part of all.
class SplitSize {
 public:
  SplitSize(int rows) : rows_(rows) {}      // NOLINT: reads as a number
  SplitSize(int64_t rows) : rows_(rows) {}  // NOLINT
  SplitSize(double part) : part_(part) {}   // NOLINT
  /// Of `total`. Throws ConfigError unless it leaves rows on both sides.
  int64_t of(int64_t total, const std::string& name) const;

 private:
  std::optional<int64_t> rows_;
  double part_ = 0;
};

}  // namespace detail

/// The options of split_dataset(): one of the sizes has to be given.
struct SplitDatasetOptions {
  /// Rows of the left side, as a whole number or a part of all; absent: what the right one leaves.
  std::optional<detail::SplitSize> left_size = std::nullopt;
  std::optional<detail::SplitSize> right_size = std::nullopt;  ///< the same of the right side
  bool shuffle = false;                                        ///< whether rows are mixed before
  /// What the order follows from; absent: the global seed.
  std::optional<Seed> seed = std::nullopt;
};

/// The first rows of a dataset, and the last (keras.utils.split_dataset). Nothing is read for it.
///
///     const auto [train, test] = split_dataset({images, labels}, {.left_size = 0.8});
///
/// Throws ConfigError for a stream, and for sizes that do not fit.
std::pair<DatasetHandle, DatasetHandle> split_dataset(const DatasetHandle& data,
                                                      const SplitDatasetOptions& options);

/// The options of timeseries_dataset_from_array(), with Keras' defaults.
struct TimeseriesDatasetOptions {
  int64_t sequence_stride = 1;              ///< steps from one window's begin to the next one's
  int64_t sampling_rate = 1;                ///< steps from one row of a window to the next
  std::optional<int64_t> batch_size = 128;  ///< windows of a batch; absent: they stay rows
  bool shuffle = false;                     ///< whether windows are mixed, anew in each epoch
  /// What the order follows from; absent: the global seed.
  std::optional<Seed> seed = std::nullopt;
  std::optional<int64_t> start_index = std::nullopt;  ///< the first step that is used
  std::optional<int64_t> end_index = std::nullopt;    ///< the step behind the last that is used
};

/// Windows of `sequence_length` steps over series whose axis 0 is the time, as a pipeline of
/// batches (keras.utils.timeseries_dataset_from_array); the label of a window is that of `targets`
/// at its first step. A window's rows are taken when it is read.
///
///     const at::Tensor series = at::rand({1000, 3});
///     DataPipeline windows = timeseries_dataset_from_array(
///         series.slice(0, 0, -10), series.slice(0, 10), 10, {.batch_size = 32});
///
/// Throws ConfigError for options that do not fit.
DataPipeline timeseries_dataset_from_array(const at::Tensor& data, const at::Tensor& targets,
                                           int64_t sequence_length,
                                           const TimeseriesDatasetOptions& options = {});

}  // namespace tessera
