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
  /// Elements that are made at a time, each on a thread of its own; with more than one the function
  /// is called from several threads at once. The largest number of a pipeline's stages counts.
  int64_t threads = 1;
  /// What the seeds that the function is given follow from; absent: the global seed and the place
  /// of the stage among the others.
  std::optional<Seed> seed = std::nullopt;
  /// After batch(), whether the function is given all rows of the global batch, as one that mixes
  /// rows needs. Every process then reads all of them; else it reads those of its devices only.
  bool whole_batch = false;
};

/// The options of DataPipeline::filter().
struct FilterOptions {
  int64_t threads = 1;  ///< elements that are looked at at a time, each on a thread of its own
};

/// The options of DataPipeline::shuffle().
struct ShuffleOptions {
  /// What the order follows from; absent: the global seed.
  std::optional<Seed> seed = std::nullopt;
  bool reshuffle_each_epoch = true;  ///< whether each epoch and each repetition has its own order
};

/// The options of DataPipeline::batch().
struct BatchOptions {
  bool drop_remainder = false;  ///< leaves out a last batch that is not full
};

/// The options of DataPipeline::padded_batch().
struct PaddedBatchOptions {
  /// The shapes of the inputs' rows in a batch, -1 for the longest of the batch; none: all -1.
  /// Where they and `y_shapes` are given without -1, each process reads the rows of its devices
  /// only.
  std::vector<Shape> x_shapes = {};
  std::vector<Shape> y_shapes = {};  ///< the same of the labels
  double x_value = 0;                ///< what inputs are padded with
  double y_value = 0;                ///< what labels are padded with
  bool drop_remainder = false;       ///< leaves out a last batch that is not full
};

/// The options of DataPipeline::bucket_by_length().
struct BucketByLengthOptions {
  /// The lengths at which a bucket ends and the next begins, ascending: {10, 20} makes buckets of
  /// lengths below 10, from 10 to 19, and from 20.
  std::vector<int64_t> boundaries = {};
  /// Rows of a batch of each bucket: one more than there are boundaries.
  std::vector<int64_t> batch_sizes = {};
  /// Whether axes that differ between rows are padded to one less than the bucket's end, so that
  /// batches have few shapes; the last bucket has to be empty then. Else to the batch's longest.
  bool pad_to_boundary = false;
  double x_value = 0;           ///< what inputs are padded with
  double y_value = 0;           ///< what labels are padded with
  bool drop_remainder = false;  ///< leaves out what does not fill a batch at the end
  int64_t threads = 1;  ///< elements that are measured at a time, each on a thread of its own
};

/// Data on their way to a model, made ready by stages in the order that tf.data's users know:
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
/// An element is an Examples, whose tensors lack the axis of the rows before batch() and have it
/// after. Copies are cheap and share what was cached. The elements of an epoch follow from the
/// data, the seeds and the number of the epoch alone, whatever the threads and the processes, and
/// any of them is made without those before: a run that goes on in mid-epoch reads what is left,
/// and a process of several the rows that its devices hold. filter() and bucket_by_length() look
/// at all elements before an epoch, once where these stay the same but for their order, on every
/// process; put cache() before them to read nothing twice. Of a StreamDataset, whose batches come
/// in an order of their own, map(), take(), skip(), zip() and prefetch() are to be had. Errors
/// name the data, the stage and the element. Where a model is not built, fit() and its kin make
/// the first row of map() or zip() once more, for its shapes.
class DataPipeline final : public StreamDataset {
 public:
  /// What map() calls: it may change the tensors of the element in place.
  using Function = std::function<Examples(Examples)>;
  /// One that is also given a seed, which follows from that of the stage, the epoch and the number
  /// of the element, so that random changes are the same on every mesh. Of a batch of which a
  /// process holds some rows, Examples::part says which; layers that change images (RandomFlip and
  /// its like) know and number the rows as in the whole batch.
  using SeededFunction = std::function<Examples(Examples, Seed)>;
  using Predicate = std::function<bool(const Examples&)>;  ///< what filter() calls
  using Length = std::function<int64_t(const Examples&)>;  ///< what bucket_by_length() calls

  /// The rows of a dataset, or the batches of a stream.
  DataPipeline(const DatasetHandle& data);  // NOLINT: reads as data
  template <std::derived_from<Dataset> Made>
  DataPipeline(Made made) : DataPipeline(DatasetHandle(std::move(made))) {}  // NOLINT
  explicit DataPipeline(const at::Tensor& x, const at::Tensor& y = {});
  /// Tensors in memory.
  DataPipeline(const Examples& all);  // NOLINT

  /// What the function makes of each element. After batch() it has to keep the rows.
  DataPipeline map(Function function, MapOptions options = {}) const;
  DataPipeline map(SeededFunction function, MapOptions options = {}) const;
  /// The elements for which the predicate is true. It is asked once for each where the elements are
  /// the same in every epoch but for their order: filter before random changes.
  DataPipeline filter(Predicate predicate, FilterOptions options = {}) const;
  /// Keeps the elements in memory once they were made, as the first epoch has them, random changes
  /// and order included; each process those that it reads.
  DataPipeline cache() const;
  /// Keeps the elements in a file, which is written when an epoch begins and it is not there, whole
  /// and by one process at a time; the others wait for it. Beginning an epoch throws ConfigError if
  /// the file is of other data, as far as their sizes, the stages, and the first, middle and last
  /// element tell, FileError if it is damaged.
  DataPipeline cache(const std::string& file) const;
  /// All elements in another order: that of fit() with the same seed.
  DataPipeline shuffle(ShuffleOptions options = {}) const;
  /// Each next one drawn of the `buffer` that come next, as tf.data does; reads are then nearly in
  /// the order of the data.
  DataPipeline shuffle(int64_t buffer, ShuffleOptions options = {}) const;
  /// So many rows in a batch.
  DataPipeline batch(int64_t size, BatchOptions options = {}) const;
  /// So many rows in a batch, padded at the end of each axis to one shape.
  DataPipeline padded_batch(int64_t size, PaddedBatchOptions options = {}) const;
  /// Rows of like lengths in a batch, padded to one shape: a row is put into the bucket of its
  /// length, which is a batch as soon as it is full (tf.data's bucket_by_sequence_length).
  DataPipeline bucket_by_length(Length length, BucketByLengthOptions options) const;
  /// The data so many times, or without end; what follows the epoch differs each time.
  DataPipeline repeat(std::optional<int64_t> count = std::nullopt) const;
  /// So many elements are made ready before they are needed, on a thread; without it one is.
  DataPipeline prefetch(int64_t count) const;
  /// The first `count` elements, or all if there are fewer.
  DataPipeline take(int64_t count) const;
  /// The elements from number `count` on.
  DataPipeline skip(int64_t count) const;
  /// The tensors of an element here and of one there as one element, as long as both have some.
  DataPipeline zip(const DataPipeline& other) const;
  /// The elements here, then those there.
  DataPipeline concatenate(const DataPipeline& other) const;
  /// What errors and histories call the data.
  DataPipeline named(const std::string& name) const;

  /// The elements of an epoch one after the other, batched or not.
  BatchFunction start(int64_t epoch) const override;
  /// Throws ConfigError before batch().
  BatchFunction start_at(int64_t epoch, int64_t first_step,
                         const LayoutMap& layouts) const override;
  /// Elements of an epoch, where they can be told without reading.
  std::optional<int64_t> steps() const override;
  bool endless() const override;
  std::string name() const override;
  /// Shapes of the inputs of the first element, which is made for this once; of an axis that is
  /// padded, -1 if it differs between the rows of the first batch.
  std::vector<Shape> input_shapes() const override;

 private:
  explicit DataPipeline(std::shared_ptr<const detail::PipelineStage> last)
      : last_(std::move(last)) {}

  std::shared_ptr<const detail::PipelineStage> last_;
};

}  // namespace tessera
