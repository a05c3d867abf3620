#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Texts as numbers, with only those that are not zero: of each text its columns in rising order
/// and their values, or, as `sequences`, its indices in their order.
struct TextRows {
  bool sequences = false;
  int64_t width = -1;  ///< columns of a batch; -1: the longest sequence among all rows
  std::vector<int64_t> ends = {};
  std::vector<int32_t> columns = {};
  std::vector<float> values = {};  ///< none for sequences

  int64_t size() const { return static_cast<int64_t>(ends.size()); }
  /// Adds the rows of another, of the same kind.
  void append(const TextRows& more);
  /// Sets the width to the longest sequence if it is not known.
  void close();

  /// The given rows: float32 [rows, width], of sequences int64, zeros behind their end.
  at::Tensor dense(std::span<const int64_t> rows) const;
  /// All rows.
  at::Tensor dense() const;
  /// The given rows in a layout of rank 2. Each shard is made by itself and reads only rows that it
  /// holds. Throws LayoutError for another rank.
  DTensor placed(std::span<const int64_t> rows, const Layout& layout) const;

 private:
  /// Rows and columns in these intervals, [rows, columns].
  at::Tensor part(std::span<const int64_t> rows, Interval columns) const;
  void fill(int64_t row, Interval wanted, float* out) const;
  void fill(int64_t row, Interval wanted, int64_t* out) const;
};

}  // namespace tessera::detail
