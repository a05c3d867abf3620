#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <tessera/framework/base/random.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

namespace detail {
class Prefetcher;
}

/// The options of BatchLoader.
struct BatchLoaderOptions {
  int64_t batch_size = 32;  ///< rows of a global batch; a stream has batches of its own
  /// Whether rows are read in the order of Permutation(size, fold_in(seed, epoch)), the same on
  /// every mesh, instead of as stored.
  bool shuffle = false;
  Seed seed = {};     ///< determines the order of shuffled rows
  int64_t epoch = 0;  ///< number of the epoch, from 0
  /// Step of the epoch to begin with: a resumed run passes the number of steps done.
  int64_t first_step = 0;
  /// Maximum number of steps in the whole epoch (default: until the data end).
  std::optional<int64_t> steps = std::nullopt;
  /// Layouts of the batches. With several processes, each reads only the rows of its devices, and
  /// some datasets make shards themselves (default: full tensors).
  LayoutMap layouts = {};
};

/// The batches of one epoch, prefetched by one on a background thread. The last batch of a dataset
/// holds the remaining rows, at least one; a stream's batches come as they are.
///
///     BatchLoader loader(data, {.batch_size = 128, .epoch = 3});
///     while (std::optional<Examples> batch = loader.next()) model.train_on_batch(*batch);
class BatchLoader {
 public:
  /// Loads `data`, which must outlive the loader. Throws ConfigError for a batch size below 1 or a
  /// first step outside the epoch.
  BatchLoader(const Dataset& data, const BatchLoaderOptions& options);
  /// Loads data of either kind; batches of a stream before the first step are dropped.
  BatchLoader(const DatasetHandle& data, const BatchLoaderOptions& options);
  BatchLoader(const Dataset&&, const BatchLoaderOptions&) = delete;
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  /// Returns the next batch, in host tensors that nobody else holds; nothing after the last.
  /// Rethrows what Dataset::get threw, in every later call too; throws ShapeError if it returned a
  /// wrong number of rows.
  std::optional<Examples> next();

  /// Returns the number of steps in the whole epoch, including those before `first_step`; nothing
  /// for a stream of unknown length.
  const std::optional<int64_t>& steps() const { return steps_; }
  int64_t first_step() const { return options_.first_step; }
  const DatasetHandle& data() const { return data_; }

  /// Returns the row indices of a step's batch; not for streams.
  std::vector<int64_t> rows(int64_t step) const;

 private:
  DatasetHandle data_;
  BatchLoaderOptions options_;
  std::optional<int64_t> steps_;
  std::shared_ptr<detail::Prefetcher> batches_;
};

/// A batch sharded over a mesh.
struct Batch {
  std::vector<DTensor> x;
  std::vector<DTensor> y;              ///< one for each output; empty for prediction
  std::vector<DTensor> sample_weight;  ///< one for all outputs, or one for each; empty: all 1
  int64_t rows = 0;                    ///< rows of the global batch
};

namespace detail {

/// Returns the number of steps in an epoch, as BatchLoader counts them; nothing for a stream of
/// unknown length. Throws ConfigError as BatchLoader's constructor.
std::optional<int64_t> epoch_steps(const DatasetHandle& data, const BatchLoaderOptions& options);

}  // namespace detail

/// Shards a batch by LayoutMap::data_layout() for "x" (each input), "y" and "sample_weight". Shards
/// are views of the batch if nobody else holds it. Throws LayoutError if a data layout's rank is
/// not the tensor's, ShapeError if `examples.part` lacks rows of this process's shards.
Batch pack_batch(Examples&& examples, const LayoutMap& layouts);

}  // namespace tessera
