#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/data/dataset.hpp>
#include <tessera/layers/text/internal/text_rows.hpp>

namespace tessera::detail {

/// A dataset of encoded texts, stored without their zeros, and their labels.
class TextDataset final : public Dataset {
 public:
  TextDataset(TextRows rows, at::Tensor labels, std::string name)
      : rows_(std::move(rows)), labels_(std::move(labels)), name_(std::move(name)) {}
  int64_t size() const override { return rows_.size(); }
  Examples get(std::span<const int64_t> rows) const override;
  Examples get_placed(std::span<const int64_t> rows, const LayoutMap& layouts) const override;
  bool concurrent() const override { return true; }
  std::string name() const override { return name_; }
  std::vector<Shape> input_shapes() const override { return {{rows_.width}}; }

 private:
  void check(std::span<const int64_t> rows) const;
  std::vector<at::Tensor> labels_of(std::span<const int64_t> rows) const;

  TextRows rows_;
  at::Tensor labels_;
  std::string name_;
};

}  // namespace tessera::detail
