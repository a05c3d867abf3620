#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <arrow/api.h>
#include <parquet/arrow/reader.h>

#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/data/table.hpp>

namespace tessera::detail {

/// Arrow's type of a numeric column, its dtype in Arrow's memory, and the dtype of the result.
struct ArrowNumbers {
  arrow::Type::type type;
  at::ScalarType stored;
  at::ScalarType dtype;
};

/// A column of a Parquet file, read in blocks.
class ParquetColumn {
 public:
  /// `where` names the file and the column. Throws FileError for a type that is not supported.
  ParquetColumn(std::string where, const arrow::DataType& type);

  /// Reads the first `rows` rows.
  void read(parquet::arrow::ColumnReader& reader, int64_t rows);
  /// Moves out the values that were read.
  Table::Column take();
  bool holds_texts() const { return is_text_; }
  /// Returns a line if integers were rounded to float64, in a column with missing values.
  std::string warning() const;
  /// Throws Arrow's error as a FileError of the column.
  void check(const arrow::Status& status) const;

  static constexpr const char* damaged_fix = "write or fetch the file again";

 private:
  at::Tensor numbers_of(const arrow::Array& array);
  at::Tensor scalars_of(const arrow::Array& array);
  void add_texts(const arrow::Array& array);

  std::string where_;
  const ArrowNumbers* numbers_;
  bool is_text_;
  bool has_missing_ = false, is_inexact_ = false;
  std::vector<at::Tensor> chunks_;
  std::vector<std::string> texts_;
};

}  // namespace tessera::detail
