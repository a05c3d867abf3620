#pragma once

#include <span>
#include <string>
#include <vector>

#include <tessera/framework/data/dataset.hpp>

namespace tessera {

/// A dataset of tensors in memory (the arrays that keras.Model.fit takes). Copies share the
/// tensors.
///
///     TensorDataset data(images, labels);
///     TensorDataset weighted({.x = {images}, .y = {labels}, .sample_weight = {weights}});
class TensorDataset final : public Dataset {
 public:
  /// Throws ShapeError or ConfigError naming the tensor unless all are dense, on the host, and have
  /// the same number of rows. Shares their memory: do not change it while the dataset is in use.
  explicit TensorDataset(Examples all, std::string name = "data");
  explicit TensorDataset(at::Tensor x, at::Tensor y = {}, std::string name = "data");

  int64_t size() const override { return all_.rows(); }
  Examples get(std::span<const int64_t> rows) const override;
  bool concurrent() const override { return true; }
  std::string name() const override { return name_; }
  std::vector<Shape> input_shapes() const override;

  /// Returns the first `n` rows. Throws ConfigError unless 0 <= n <= size().
  TensorDataset take(int64_t n) const;

 private:
  Examples all_;
  std::string name_;
};

}  // namespace tessera
