#include <tessera/layers/text/internal/text_dataset.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

void TextDataset::check(std::span<const int64_t> rows) const {
  for (const int64_t row : rows) {
    if (row >= 0 && row < size()) continue;
    throw ShapeError(name_, str("a row number lies in [0, ", size(), ")"), str(row),
                     "ask for rows that the dataset has");
  }
}

std::vector<at::Tensor> TextDataset::labels_of(std::span<const int64_t> rows) const {
  if (!labels_.defined()) return {};
  const at::Tensor numbers = at::tensor(at::ArrayRef<int64_t>(rows.data(), rows.size()), at::kLong);
  return {labels_.index_select(0, numbers)};
}

Examples TextDataset::get(std::span<const int64_t> rows) const {
  check(rows);
  return {.x = {rows_.dense(rows)}, .y = labels_of(rows)};
}

Examples TextDataset::get_placed(std::span<const int64_t> rows, const LayoutMap& layouts) const {
  check(rows);
  return {.y = labels_of(rows), .placed_x = {rows_.placed(rows, layouts.data_layout("x", 2))}};
}

}  // namespace tessera::detail
