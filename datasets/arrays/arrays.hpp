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
  std::optional<int64_t> maxlen = std::nullopt;  ///< length of all (default: of the longest)
  at::ScalarType dtype = at::kInt;               ///< dtype of the result
  std::string padding = "pre";     ///< end at which short sequences are padded: "pre" or "post"
  std::string truncating = "pre";  ///< end at which long sequences are truncated: "pre" or "post"
  double value = 0;                ///< padding value
};

/// Pads and truncates sequences to one tensor (sequences, length) (keras.utils.pad_sequences):
///
///     const at::Tensor padded = pad_sequences({{1}, {2, 3}, {4, 5, 6}}, {.maxlen = 2});
///
/// Throws ConfigError for invalid options.
at::Tensor pad_sequences(const std::vector<std::vector<int64_t>>& sequences,
                         const PadSequencesOptions& options = {});
/// Pads tensors along axis 0. Throws ShapeError if they differ in other axes.
at::Tensor pad_sequences(std::span<const at::Tensor> sequences,
                         const PadSequencesOptions& options = {});

/// Returns the one-hot encoding of class indices in float64, along a new last axis that replaces a
/// last axis of extent 1 (keras.utils.to_categorical). Without `num_classes`, or with 0, it is the
/// largest index + 1. Throws ConfigError for a class outside [0, num_classes).
at::Tensor to_categorical(const at::Tensor& x, std::optional<int64_t> num_classes = std::nullopt);

/// Size of one side of a split: a number of rows, or a fraction of all.
class SplitSize {
 public:
  SplitSize(int rows) : rows_(rows) {}                 // NOLINT: reads as a number
  SplitSize(int64_t rows) : rows_(rows) {}             // NOLINT
  SplitSize(double fraction) : fraction_(fraction) {}  // NOLINT
  /// Returns the number of rows out of `total`. Throws ConfigError unless it leaves rows on both
  /// sides.
  int64_t of(int64_t total, const std::string& name) const;

 private:
  std::optional<int64_t> rows_;
  double fraction_ = 0;
};

/// The options of split_dataset(); at least one size is required.
struct SplitDatasetOptions {
  /// Size of the left side: a number of rows, or a fraction (default: what the right side leaves).
  std::optional<SplitSize> left_size = std::nullopt;
  /// Size of the right side: a number of rows, or a fraction (default: what the left side leaves).
  std::optional<SplitSize> right_size = std::nullopt;
  bool shuffle = false;  ///< whether rows are shuffled before the split
  /// Seed of the order (default: the global seed).
  std::optional<Seed> seed = std::nullopt;
};

/// Splits a dataset into its first and its last rows (keras.utils.split_dataset). Reads nothing.
///
///     const auto [train, test] = split_dataset({images, labels}, {.left_size = 0.8});
///
/// Throws ConfigError for a stream, and for sizes that leave a side empty or exceed the data.
std::pair<DatasetHandle, DatasetHandle> split_dataset(const DatasetHandle& data,
                                                      const SplitDatasetOptions& options);

/// The options of timeseries_dataset_from_array(), with Keras' defaults.
struct TimeseriesDatasetOptions {
  int64_t sequence_stride = 1;              ///< steps between the begins of successive windows
  int64_t sampling_rate = 1;                ///< steps between successive rows of a window
  std::optional<int64_t> batch_size = 128;  ///< windows per batch; absent: not batched
  bool shuffle = false;                     ///< whether windows are shuffled, anew in each epoch
  /// Seed of the order (default: the global seed).
  std::optional<Seed> seed = std::nullopt;
  std::optional<int64_t> start_index = std::nullopt;  ///< first step to use
  std::optional<int64_t> end_index = std::nullopt;    ///< one past the last step to use
};

/// Returns windows of `sequence_length` steps over series whose axis 0 is time, as a pipeline of
/// batches (keras.utils.timeseries_dataset_from_array). The label of a window is `targets` at its
/// first step. A window's rows are gathered when it is read.
///
///     const at::Tensor series = at::rand({1000, 3});
///     DataPipeline windows = timeseries_dataset_from_array(
///         series.slice(0, 0, -10), series.slice(0, 10), 10, {.batch_size = 32});
///
/// Throws ConfigError for invalid options.
DataPipeline timeseries_dataset_from_array(const at::Tensor& data, const at::Tensor& targets,
                                           int64_t sequence_length,
                                           const TimeseriesDatasetOptions& options = {});

}  // namespace tessera
