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

/// Rows [lo, hi) of a global batch of `of` rows.
struct RowPart {
  Interval rows;
  int64_t of = 0;
};

/// The rows of a global batch that this process's devices hold, of "x", "y" and "sample_weight"
/// together.
RowPart local_part(int64_t rows, const LayoutMap& layouts);

/// Some rows of a dataset, on the host. Axis 0 of each tensor counts the rows.
struct Examples {
  std::vector<at::Tensor> x = {};  ///< one for each input of the model
  std::vector<at::Tensor> y = {};  ///< labels of each output; none for data to predict
  /// Weights of the rows: one tensor for all outputs, or one for each; none: all 1.
  std::vector<at::Tensor> sample_weight = {};
  /// The shards of the inputs that get_placed() made, in place of x.
  std::vector<DTensor> placed_x = {};
  /// Which rows of the global batch the tensors hold, where a process reads those of its devices
  /// only; absent: all.
  std::optional<RowPart> part = std::nullopt;
  /// Rows of the global batch.
  int64_t rows() const {
    if (part) return part->of;
    if (!x.empty()) return x[0].size(0);
    return placed_x.empty() ? 0 : placed_x[0].shape()[0];
  }
};

/// Data that can be read in any order. get() may be called from another thread than the one that
/// trains, but from one at a time unless the data are concurrent().
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Rows of the data.
  virtual int64_t size() const = 0;
  /// The rows of these numbers, in this order, in fresh memory. Throws FileError, ShapeError.
  virtual Examples get(std::span<const int64_t> rows) const = 0;
  /// The rows of a global batch, or those that this process's devices hold as `layouts` cut it; of
  /// none of them a row is read all the same, for its shape. A dataset that can make each shard of
  /// its inputs by itself does so here, instead of whole tensors that are cut up.
  virtual Examples get_placed(std::span<const int64_t> rows, const LayoutMap& layouts) const;
  /// Whether get() may be called from several threads at a time.
  virtual bool concurrent() const { return false; }
  /// What a history calls it: "mnist", "mnist (synthetic)".
  virtual std::string name() const { return "data"; }
  /// Shapes of the inputs without their rows.
  virtual std::vector<Shape> input_shapes() const = 0;
};

/// Gives the batches of an epoch, one a call; nothing after the last.
using BatchFunction = std::function<std::optional<Examples>()>;

/// Data that can only be read in an order of their own, batch by batch. Batches are asked for on
/// another thread than the one that trains, one at a time.
class StreamDataset {
 public:
  virtual ~StreamDataset() = default;
  /// The batches of an epoch from the first on; fit asks once an epoch.
  virtual BatchFunction start(int64_t epoch) const = 0;
  /// The batches of an epoch from `first_step` on, of which this process may be given those rows
  /// only that its devices hold as `layouts` cut them, if those are defined (Examples::part).
  /// Unless overridden it is start(), of whose batches those before are read and dropped.
  virtual BatchFunction start_at(int64_t epoch, int64_t first_step, const LayoutMap& layouts) const;
  /// Batches of an epoch, if known.
  virtual std::optional<int64_t> steps() const { return std::nullopt; }
  /// Whether an epoch has no end, so that steps_per_epoch is needed.
  virtual bool endless() const { return false; }
  virtual std::string name() const { return "generator"; }
  /// Shapes of the inputs without their rows.
  virtual std::vector<Shape> input_shapes() const = 0;
};

namespace detail {

/// Rows of x, and y and weights for each; an empty tensor is left out.
Examples examples_of(const at::Tensor& x, const at::Tensor& y, const at::Tensor& sample_weight);

}  // namespace detail

/// A handle to data of either kind, made of one by value or shared, or of tensors in memory:
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
  /// Tensors in memory, of which a TensorDataset is made. Throws ShapeError or ConfigError naming
  /// the tensor unless all are dense, on the host, and have equally many rows.
  DatasetHandle(const Examples& all);                           // NOLINT
  DatasetHandle(const at::Tensor& x, const at::Tensor& y = {},  // NOLINT
                const at::Tensor& sample_weight = {});

  /// Data of which any row can be read. Throws ConfigError for a stream.
  const Dataset& operator*() const { return *rows("data"); }
  const Dataset* operator->() const { return rows("data").get(); }
  /// Shares the data of which any row can be read. Throws ConfigError for a stream, which begins
  /// with `where`.
  const std::shared_ptr<const Dataset>& rows(const std::string& where) const;
  /// Null unless it is a stream.
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

}  // namespace tessera
