#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tessera/framework/data/batch_loader.hpp>

namespace tessera::detail {

/// Numbers of the rows in the batches of the epoch that `options` name, of `size` rows.
class BatchRows {
 public:
  BatchRows(int64_t size, const BatchLoaderOptions& options);
  std::vector<int64_t> of(int64_t step) const;

 private:
  int64_t size_, batch_size_;
  std::optional<Permutation> order_;
};

/// The batches of a dataset by their numbers, as a BatchLoader of these options gives them; read
/// when they are asked for.
class BatchReader {
 public:
  /// `options.epoch` and `options.first_step` do not count.
  BatchReader(const DatasetHandle& data, const BatchLoaderOptions& options)
      : data_(data), options_(options) {}

  /// The batch of a step, of host tensors that nobody else holds; nothing where a stream has ended.
  /// A stream is read on from the last batch, or for an earlier one from its beginning. Throws as
  /// BatchLoader::next().
  std::optional<Examples> read(int64_t epoch, int64_t step);

 private:
  Examples read_rows(int64_t epoch, int64_t step);
  std::optional<Examples> read_stream(int64_t epoch, int64_t step);

  DatasetHandle data_;
  BatchLoaderOptions options_;
  std::optional<BatchRows> rows_;  ///< the rows of the epoch of options_
  BatchFunction stream_;           ///< batches of epoch_, about to give that of step next_
  int64_t epoch_ = 0, next_ = 0;
};

}  // namespace tessera::detail
