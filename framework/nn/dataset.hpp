#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/shape.hpp>

namespace tessera {

/// Some rows of a dataset, on the host. Axis 0 of each tensor counts the rows.
struct Examples {
  std::vector<at::Tensor> x = {};    ///< one for each input of the model
  at::Tensor y = {};                 ///< labels; undefined for data to predict
  at::Tensor sample_weight = {};     ///< undefined: all 1
  int64_t rows() const { return x.empty() ? 0 : x[0].size(0); }
};

/// Data that can be read in any order. get() may be called from another thread than the one that
/// trains, but from one at a time.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  /// The rows of these numbers, in this order, in fresh memory. Throws FileError, ShapeError.
  virtual Examples get(std::span<const int64_t> rows) const = 0;
  /// What a history calls it: "mnist", "mnist (synthetic)".
  virtual std::string name() const { return "data"; }
  /// Shapes of the inputs without their rows.
  virtual std::vector<Shape> input_shapes() const = 0;
};

/// A handle to a dataset, made of one by value or shared.
class DatasetRef {
 public:
  DatasetRef() = default;
  DatasetRef(std::shared_ptr<const Dataset> made)
      : made_(std::move(made)) {}  // NOLINT: reads as data
  template <std::derived_from<Dataset> Made>
  DatasetRef(Made made) : made_(std::make_shared<Made>(std::move(made))) {}  // NOLINT
  const Dataset& operator*() const { return *made_; }
  const Dataset* operator->() const { return made_.get(); }
  explicit operator bool() const { return made_ != nullptr; }

 private:
  std::shared_ptr<const Dataset> made_;
};

}  // namespace tessera
