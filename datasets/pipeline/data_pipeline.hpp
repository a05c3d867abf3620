#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/random.hpp>
#include <tessera/framework/data/dataset.hpp>

namespace tessera {

namespace detail {
class PipelineStage;
}  // namespace detail

/// The options of DataPipeline::map().
struct MapOptions {
  /// Elements made concurrently, each on its own thread. The whole pipeline uses the maximum over
  /// its map stages: if that is more than 1, the functions of all of them are called from several
  /// threads at once.
  int64_t threads = 1;
  /// Seed from which the seeds of the function's calls are derived (default: the global seed and
  /// the stage's position in the pipeline).
  std::optional<Seed> seed = std::nullopt;
  /// Whether, after batch(), the function gets all rows of the global batch, which a function that
  /// mixes rows needs. Every process then reads all rows instead of only those of its devices.
  bool whole_batch = false;
};

/// The options of DataPipeline::filter().
struct FilterOptions {
  int64_t threads = 1;  ///< elements tested concurrently, each on its own thread
};

/// The options of DataPipeline::shuffle().
struct ShuffleOptions {
  /// Seed of the order (default: the global seed).
  std::optional<Seed> seed = std::nullopt;
  bool reshuffle_each_epoch = true;  ///< whether each epoch and each repetition gets its own order
};

/// The options of DataPipeline::batch().
struct BatchOptions {
  bool drop_remainder = false;  ///< whether to drop a last batch that is not full
};

/// The options of DataPipeline::padded_batch().
struct PaddedBatchOptions {
  /// Shapes that the inputs' rows are padded to; -1 is the longest of the batch (default: all -1).
  /// If these and `y_shapes` are given without -1, each process reads only the rows of its devices.
  std::vector<Shape> x_shapes = {};
  std::vector<Shape> y_shapes = {};  ///< shapes that the labels' rows are padded to, likewise
  double x_value = 0;                ///< padding value of the inputs
  double y_value = 0;                ///< padding value of the labels
  bool drop_remainder = false;       ///< whether to drop a last batch that is not full
};

/// The options of DataPipeline::bucket_by_length().
struct BucketByLengthOptions {
  /// Lengths at which one bucket ends and the next begins, ascending: {10, 20} makes buckets of
  /// lengths below 10, from 10 to 19, and from 20.
  std::vector<int64_t> boundaries = {};
  /// Batch size of each bucket; one more entry than `boundaries`.
  std::vector<int64_t> batch_sizes = {};
  /// Whether axes that differ between rows are padded to the bucket's upper boundary minus 1, so
  /// that batches have few shapes; the last bucket must then be empty. If false, they are padded to
  /// the longest row of the batch.
  bool pad_to_boundary = false;
  double x_value = 0;           ///< padding value of the inputs
  double y_value = 0;           ///< padding value of the labels
  bool drop_remainder = false;  ///< whether to drop the buckets that are not full at the end
  int64_t threads = 1;          ///< elements measured concurrently, each on its own thread
};

/// An input pipeline in the style of tf.data: a source followed by transforms.
///
///     DataPipeline train = DataPipeline(data)
///                              .map([](Examples row) {
///                                row.x[0] = row.x[0] / 255;
///                                return row;
///                              }, {.threads = 2})
///                              .cache()
///                              .shuffle()
///                              .batch(32);
///     model.fit(train, {.epochs = 3});
///
/// An element is an Examples; its tensors have a batch axis after batch() and none before. Copies
/// are cheap and share their caches.
///
/// The elements of an epoch depend only on the data, the seeds and the epoch number, not on the
/// number of threads or processes. Each element can be made without those before it: a run resumed
/// in mid-epoch reads only what is left, and each process reads only the rows that its devices
/// hold. filter() and bucket_by_length() look at all elements before an epoch, on every process
/// (only once if epochs differ in order alone); put cache() before them to read nothing twice.
///
/// A pipeline made from another StreamDataset, whose batches come in a fixed order, supports only
/// map(), take(), skip(), zip(), prefetch() and named(). Errors name the data, the stage and the
/// element. For a model that is not built yet, fit() and similar calls compute the first element of
/// map() or zip() once more, to learn its shapes.
class DataPipeline final : public StreamDataset {
 public:
  /// Function of map(); may change the element's tensors in place.
  using Function = std::function<Examples(Examples)>;
  /// Function of map() that also gets a seed, derived from the stage's seed, the epoch and the
  /// element number, so that random changes are the same on every mesh. If a process holds only
  /// some rows of a batch, Examples::part says which; augmentation layers such as RandomFlip use it
  /// to number the rows as in the global batch.
  using SeededFunction = std::function<Examples(Examples, Seed)>;
  using Predicate = std::function<bool(const Examples&)>;  ///< function of filter()
  using Length = std::function<int64_t(const Examples&)>;  ///< function of bucket_by_length()

  /// Reads the rows of a dataset, or the batches of a stream.
  DataPipeline(const DatasetHandle& data);  // NOLINT: reads as data
  template <std::derived_from<Dataset> Made>
  DataPipeline(Made made) : DataPipeline(DatasetHandle(std::move(made))) {}  // NOLINT
  explicit DataPipeline(const at::Tensor& x, const at::Tensor& y = {});
  /// Reads the rows of tensors in memory.
  DataPipeline(const Examples& all);  // NOLINT

  /// Applies `function` to each element. After batch() it must keep the number of rows.
  DataPipeline map(Function function, MapOptions options = {}) const;
  DataPipeline map(SeededFunction function, MapOptions options = {}) const;
  /// Keeps the elements for which `predicate` is true. It is called only once per element if epochs
  /// differ in order alone: filter before random changes.
  DataPipeline filter(Predicate predicate, FilterOptions options = {}) const;
  /// Caches elements in memory when they are first read, always as made for epoch 0, so that later
  /// epochs repeat its random changes and its order. Each process caches only what it reads.
  DataPipeline cache() const;
  /// Caches elements in a file. If the file is missing when an epoch begins, one process writes all
  /// elements to it and the others wait. Beginning an epoch throws ConfigError if the file holds
  /// other data (other sizes or stages, or another first, middle or last element), FileError if it
  /// is damaged.
  DataPipeline cache(const std::string& file) const;
  /// Shuffles all elements into the order that fit() uses with the same seed.
  DataPipeline shuffle(ShuffleOptions options = {}) const;
  /// Draws each element from a buffer of the next `buffer` ones, as tf.data does, so that reads are
  /// nearly sequential.
  DataPipeline shuffle(int64_t buffer, ShuffleOptions options = {}) const;
  /// Groups `size` rows into one batch.
  DataPipeline batch(int64_t size, BatchOptions options = {}) const;
  /// Groups `size` rows into one batch, each padded at the end of its axes to one shape.
  DataPipeline padded_batch(int64_t size, PaddedBatchOptions options = {}) const;
  /// Groups rows of similar length into batches and pads each batch to one shape: a row goes into
  /// the bucket of its length, and a full bucket becomes a batch (tf.data's
  /// bucket_by_sequence_length).
  DataPipeline bucket_by_length(Length length, BucketByLengthOptions options) const;
  /// Repeats the data `count` times (default: forever). Everything that depends on the epoch, such
  /// as the order of shuffle(), differs between repetitions.
  DataPipeline repeat(std::optional<int64_t> count = std::nullopt) const;
  /// Prefetches `count` elements on a background thread; a pipeline without this prefetches one.
  DataPipeline prefetch(int64_t count) const;
  /// Keeps the first `count` elements, or all if there are fewer.
  DataPipeline take(int64_t count) const;
  /// Skips the first `count` elements.
  DataPipeline skip(int64_t count) const;
  /// Appends to each element the tensors of the element of `other` at the same position; ends with
  /// the shorter of the two.
  DataPipeline zip(const DataPipeline& other) const;
  /// Appends the elements of `other`.
  DataPipeline concatenate(const DataPipeline& other) const;
  /// Sets the name of the data in errors and histories.
  DataPipeline named(const std::string& name) const;

  /// Returns the elements of an epoch in order, batched or not.
  BatchFunction start(int64_t epoch) const override;
  /// Throws ConfigError if the elements are single rows.
  BatchFunction start_at(int64_t epoch, int64_t first_step,
                         const LayoutMap& layouts) const override;
  /// Returns the number of elements of an epoch, if known without reading.
  std::optional<int64_t> steps() const override;
  bool endless() const override;
  std::string name() const override;
  /// Returns the shapes of the inputs of the first element, which is made for this once. A padded
  /// axis is -1 if it differs between the rows of the first batch.
  std::vector<Shape> input_shapes() const override;

 private:
  explicit DataPipeline(std::shared_ptr<const detail::PipelineStage> last)
      : last_(std::move(last)) {}

  std::shared_ptr<const detail::PipelineStage> last_;
};

}  // namespace tessera
