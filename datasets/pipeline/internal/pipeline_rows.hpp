#pragma once

#include <span>
#include <string>
#include <vector>

#include <tessera/framework/data/dataset.hpp>

namespace tessera::detail {

/// Some of a batch's rows, as views.
Examples rows_between(const Examples& batch, Interval rows);
/// A row of a batch without the axis of the rows, as views.
Examples row_of(const Examples& batch, int64_t row);
/// Rows that the tensors of a batch have, which may be those of this process only.
int64_t held_rows(const Examples& batch);
/// The same in memory of its own.
Examples cloned(const Examples& element);

/// What rows are padded to, and with.
struct RowPadding {
  std::vector<Shape> x = {};  ///< -1 or none: to the longest of the rows
  std::vector<Shape> y = {};
  double x_value = 0;
  double y_value = 0;
};

/// Rows as a batch. Throws ShapeError beginning with `where` for rows of different shapes.
Examples stacked(std::span<const Examples> rows, const std::string& where);
/// The shapes that rows have once they are padded: no -1 is left. Throws ShapeError beginning with
/// `where` for rows of other numbers of tensors or axes, or that are longer than a given shape.
RowPadding padding_of(std::span<const Examples> rows, const RowPadding& given,
                      const std::string& where);
/// Rows as a batch, each padded at the ends of its axes to the shapes that padding_of() gave.
Examples padded(std::span<const Examples> rows, const RowPadding& padding);

/// Which rows of a global batch this process is to hold; nothing: all.
std::optional<RowPart> wanted_part(int64_t rows, const LayoutMap& layouts);
/// Of a whole batch those rows that this process is to hold.
Examples part_of(Examples whole, const LayoutMap& layouts);

}  // namespace tessera::detail
