#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Encoded texts as sparse rows: for each text its nonzero columns in ascending order and their
/// values or, as `sequences`, its token indices in order.
struct TextRows {
  bool sequences = false;
  int64_t width = -1;  ///< columns of a batch; -1: the longest sequence of all rows
  std::vector<int64_t> ends = {};
  std::vector<int32_t> columns = {};
  std::vector<float> values = {};  ///< empty for sequences

  int64_t size() const { return static_cast<int64_t>(ends.size()); }
  /// Appends the rows of another of the same kind.
  void append(const TextRows& more);
  /// Sets the width to the longest sequence if it is -1.
  void close();

  /// Returns the given rows, [rows, width]: float32, or int64 sequences padded with zeros.
  at::Tensor dense(std::span<const int64_t> rows) const;
  /// Returns all rows.
  at::Tensor dense() const;
  /// Returns the given rows in a layout of rank 2. Each shard is made separately from only the rows
  /// that it holds. Throws LayoutError for another rank.
  DTensor placed(std::span<const int64_t> rows, const Layout& layout) const;

 private:
  /// Returns the given rows in an interval of columns, [rows, columns].
  at::Tensor dense_block(std::span<const int64_t> rows, Interval columns) const;
  void fill(int64_t row, Interval interval, float* out) const;
  void fill(int64_t row, Interval interval, int64_t* out) const;
};

}  // namespace tessera::detail
