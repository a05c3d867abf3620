#pragma once

#include <span>
#include <string>
#include <vector>

#include <tessera/framework/data/dataset.hpp>

namespace tessera::detail {

/// Returns views of an interval of a batch's rows.
Examples rows_between(const Examples& batch, Interval rows);
/// Returns views of one row of a batch, without the batch axis.
Examples row_of(const Examples& batch, int64_t row);
/// Returns the number of rows in the tensors of a batch, which may be only those of this process.
int64_t held_rows(const Examples& batch);
/// Returns a deep copy of an element.
Examples cloned(const Examples& element);

/// Shapes and values that rows are padded with.
struct RowPadding {
  std::vector<Shape> x = {};  ///< -1 or empty: the longest of the rows
  std::vector<Shape> y = {};
  double x_value = 0;
  double y_value = 0;
};

/// Stacks rows into a batch. Throws ShapeError beginning with `where` for rows of different shapes.
Examples stacked(std::span<const Examples> rows, const std::string& where);
/// Replaces each -1 by the longest extent of the rows. Throws ShapeError beginning with `where` if
/// rows differ in their number of tensors or axes, or exceed a requested shape.
RowPadding padding_of(std::span<const Examples> rows, const RowPadding& requested,
                      const std::string& where);
/// Stacks rows into a batch, each padded at the end of its axes to the shapes from padding_of().
Examples padded(std::span<const Examples> rows, const RowPadding& padding);

/// Returns which rows of a global batch this process is to hold; nothing means all.
std::optional<RowPart> part_to_read(int64_t rows, const LayoutMap& layouts);
/// Returns the rows of a full batch that this process is to hold.
Examples part_of(Examples batch, const LayoutMap& layouts);

}  // namespace tessera::detail
