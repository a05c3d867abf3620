#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// An interval of the rows of a global batch, which has `of` rows.
struct RowPart {
  Interval rows;
  int64_t of = 0;
};

/// Returns the rows of a global batch that this process's devices hold: the smallest interval that
/// covers "x", "y" and "sample_weight", of all microbatches if the layouts have a pipeline.
RowPart local_part(int64_t rows, const LayoutMap& layouts);

/// Rows of a dataset, on the host. Axis 0 of each tensor is the row axis.
struct Examples {
  std::vector<at::Tensor> x = {};  ///< one for each input of the model
  std::vector<at::Tensor> y = {};  ///< labels of each output; empty for prediction
  /// Weights of the rows: one tensor for all outputs, or one for each; empty: all 1.
  std::vector<at::Tensor> sample_weight = {};
  /// Shards of the inputs, made by get_placed() instead of x.
  std::vector<DTensor> placed_x = {};
  /// Rows of the global batch that the tensors hold, if a process reads only those of its devices
  /// (default: all).
  std::optional<RowPart> part = std::nullopt;
  /// Returns the number of rows in the global batch.
  int64_t rows() const {
    if (part) return part->of;
    if (!x.empty()) return x[0].size(0);
    return placed_x.empty() ? 0 : placed_x[0].shape()[0];
  }
};

/// Data with random access to rows. get() may be called from another thread than the training one,
/// but from one thread at a time unless the dataset is concurrent().
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Returns the number of rows.
  virtual int64_t size() const = 0;
  /// Returns the rows with these indices, in this order, in fresh memory. Throws FileError,
  /// ShapeError.
  virtual Examples get(std::span<const int64_t> rows) const = 0;
  /// Returns the rows of a global batch, or only those that this process's devices hold under
  /// `layouts`; if they hold none, one row is read for its shape. Override it if the dataset can
  /// make each shard of its inputs by itself, instead of full tensors that are sharded later.
  virtual Examples get_placed(std::span<const int64_t> rows, const LayoutMap& layouts) const;
  /// Whether get() may be called from several threads at once.
  virtual bool concurrent() const { return false; }
  /// Returns the dataset's name in a history: "mnist", "mnist (synthetic)".
  virtual std::string name() const { return "data"; }
  /// Returns the shapes of the inputs without the row axis.
  virtual std::vector<Shape> input_shapes() const = 0;
};

/// Returns the next batch of a pass over the data on every call; nothing after the last.
using BatchFunction = std::function<std::optional<Examples>()>;

/// Data that can only be read batch by batch, in their own order. Batches are read on another
/// thread than the training one, one at a time.
class StreamDataset {
 public:
  virtual ~StreamDataset() = default;
  /// Returns the batches of pass `epoch` over the data from the first on. A pass of fit is an
  /// epoch, or several with steps_per_epoch; passes are counted over the fits of a model.
  virtual BatchFunction start(int64_t epoch) const = 0;
  /// Returns the batches of a pass from `first_step` on. If `layouts` are defined, a batch may
  /// hold only the rows of this process's devices (Examples::part). By default, calls start() and
  /// reads and drops the earlier batches.
  virtual BatchFunction start_at(int64_t epoch, int64_t first_step, const LayoutMap& layouts) const;
  /// Returns the number of batches in a pass, if known.
  virtual std::optional<int64_t> steps() const { return std::nullopt; }
  /// Whether a pass never ends, so that steps_per_epoch is required.
  virtual bool endless() const { return false; }
  virtual std::string name() const { return "generator"; }
  /// Returns the shapes of the inputs without the row axis.
  virtual std::vector<Shape> input_shapes() const = 0;
};

namespace detail {

/// Returns rows of x with labels y and weights; an undefined tensor is left out.
Examples examples_of(const at::Tensor& x, const at::Tensor& y, const at::Tensor& sample_weight);

}  // namespace detail

/// A handle to data of either kind, made from a value, a shared pointer or tensors in memory:
///
///     model.fit(Examples{.x = {images, captions}, .y = {labels}}, {.epochs = 3});
class DatasetHandle {
 public:
  DatasetHandle() = default;
  DatasetHandle(std::shared_ptr<const Dataset> made)
      : rows_(std::move(made)) {}  // NOLINT: reads as data
  DatasetHandle(std::shared_ptr<const StreamDataset> made) : stream_(std::move(made)) {}  // NOLINT
  template <std::derived_from<Dataset> Made>
  DatasetHandle(Made made) : rows_(std::make_shared<Made>(std::move(made))) {}  // NOLINT
  template <std::derived_from<StreamDataset> Made>
  DatasetHandle(Made made) : stream_(std::make_shared<Made>(std::move(made))) {}  // NOLINT
  /// Makes a TensorDataset of tensors in memory. Throws ShapeError or ConfigError naming the tensor
  /// unless all are dense, on the host, and have the same number of rows.
  DatasetHandle(const Examples& all);                           // NOLINT
  DatasetHandle(const at::Tensor& x, const at::Tensor& y = {},  // NOLINT
                const at::Tensor& sample_weight = {});

  /// Returns the dataset. Throws ConfigError for a stream.
  const Dataset& operator*() const { return *rows("data"); }
  const Dataset* operator->() const { return rows("data").get(); }
  /// Returns the dataset, shared. Throws ConfigError beginning with `where` for a stream.
  const std::shared_ptr<const Dataset>& rows(const std::string& where) const;
  /// Returns the stream; null for a dataset.
  const std::shared_ptr<const StreamDataset>& stream() const { return stream_; }
  explicit operator bool() const { return rows_ || stream_; }

  std::string name() const { return stream_ ? stream_->name() : rows_->name(); }
  std::vector<Shape> input_shapes() const {
    return stream_ ? stream_->input_shapes() : rows_->input_shapes();
  }

 private:
  std::shared_ptr<const Dataset> rows_;
  std::shared_ptr<const StreamDataset> stream_;
};

/// Returns all rows of a data set, in order, as tensors; of a stream, those of its first pass.
/// Throws ConfigError for a stream without end.
Examples all_rows(const DatasetHandle& data);

}  // namespace tessera
