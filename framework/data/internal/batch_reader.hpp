#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tessera/framework/data/batch_loader.hpp>

namespace tessera::detail {

/// Row indices of the batches of epoch `options.epoch`, for a dataset of `size` rows.
class BatchRows {
 public:
  BatchRows(int64_t size, const BatchLoaderOptions& options);
  std::vector<int64_t> of(int64_t step) const;

 private:
  int64_t size_, batch_size_;
  std::optional<Permutation> order_;
};

/// Reads the batches of a dataset by step number, on demand; the same batches as a BatchLoader with
/// these options.
class BatchReader {
 public:
  /// `options.epoch` and `options.first_step` are ignored.
  BatchReader(const DatasetHandle& data, const BatchLoaderOptions& options)
      : data_(data), options_(options) {}

  /// Returns the batch of a step, in host tensors that nobody else holds; nothing if a stream has
  /// ended. A stream continues after the last batch, and is started again for an earlier step.
  /// Throws as BatchLoader::next().
  std::optional<Examples> read(int64_t epoch, int64_t step);

 private:
  Examples read_rows(int64_t epoch, int64_t step);
  std::optional<Examples> read_stream(int64_t epoch, int64_t step);

  DatasetHandle data_;
  BatchLoaderOptions options_;
  std::optional<BatchRows> rows_;  ///< row indices of epoch options_.epoch
  BatchFunction stream_;           ///< batches of epoch_; the next one is that of step next_
  int64_t epoch_ = 0, next_ = 0;
  bool ended_ = false;  ///< whether the stream has no further batches in epoch_
};

}  // namespace tessera::detail
