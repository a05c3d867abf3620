#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include <tessera/framework/base/random.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// The options of BatchLoader.
struct BatchLoaderOptions {
  int64_t batch_size = 32;  ///< rows of a global batch; a stream has batches of its own
  /// Rows in the order of Permutation(size, fold_in(seed, epoch)) instead of as stored: the same on
  /// every mesh.
  bool shuffle = false;
  Seed seed = {};     ///< what the order of shuffled rows follows from
  int64_t epoch = 0;  ///< number of the epoch, from 0
  /// Step of the epoch to begin with: a run that goes on passes how many it has done.
  int64_t first_step = 0;
  /// Steps of the whole epoch at most; absent: until the data end.
  std::optional<int64_t> steps = std::nullopt;
  /// Where batches will lie: a process of several reads the rows that its devices hold only, and
  /// some data make shards by themselves. Undefined: whole tensors.
  LayoutMap layouts = {};
};

/// The batches of one epoch, each read on a background thread while the one before is in use. Of
/// rows, the last batch holds what is left, at least one; a stream's batches come as they are.
///
///     BatchLoader loader(data, {.batch_size = 128, .epoch = 3});
///     while (std::optional<Examples> batch = loader.next()) model.train_on_batch(*batch);
class BatchLoader {
 public:
  /// The data must outlive the loader. Throws ConfigError for a batch size below 1 or a first step
  /// that the epoch does not have.
  BatchLoader(const Dataset& data, const BatchLoaderOptions& options);
  /// Loads data of either kind; a stream begins with dropping its batches before the first step.
  BatchLoader(const DatasetHandle& data, const BatchLoaderOptions& options);
  BatchLoader(const Dataset&&, const BatchLoaderOptions&) = delete;
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  /// The next batch, of host tensors that nobody else holds; nothing after the last. Rethrows what
  /// Dataset::get threw, now and from then on; throws ShapeError if it gave another number of rows.
  std::optional<Examples> next();

  /// Steps of the whole epoch, those before `first_step` included; nothing if a stream does not
  /// tell.
  const std::optional<int64_t>& steps() const { return steps_; }
  int64_t first_step() const { return options_.first_step; }

  /// Numbers of the rows in a step's batch; not for streams.
  std::vector<int64_t> rows(int64_t step) const;

 private:
  void read_all(const std::stop_token& stop);

  DatasetHandle data_;
  BatchLoaderOptions options_;
  std::optional<int64_t> steps_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Examples> ready_;
  std::exception_ptr error_;
  bool finished_ = false;
  /// Last, so that it is joined before what it uses goes.
  std::jthread reader_;
};

/// A batch cut over a mesh.
struct Batch {
  std::vector<DTensor> x;
  std::vector<DTensor> y;              ///< one for each output; none for data to predict
  std::vector<DTensor> sample_weight;  ///< none: all 1; one for all outputs, or one for each
  int64_t rows = 0;                    ///< rows of the global batch
};

namespace detail {

/// Steps of an epoch, as BatchLoader counts them; nothing if a stream does not tell. Throws
/// ConfigError as its constructor.
std::optional<int64_t> epoch_steps(const DatasetHandle& data, const BatchLoaderOptions& options);

}  // namespace detail

/// Cuts a batch as LayoutMap::data_layout says for "x" (each input), "y" and "sample_weight".
/// Shards are views of the batch where nobody else holds it. Throws LayoutError if a data layout's
/// rank is not the tensor's, ShapeError if a part of the rows lacks some of this process's shards.
Batch pack_batch(Examples&& examples, const LayoutMap& layouts);

}  // namespace tessera
