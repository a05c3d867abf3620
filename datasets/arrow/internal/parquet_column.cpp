#include <tessera/datasets/arrow/internal/parquet_column.hpp>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>
#include <arrow/util/bit_util.h>

#include <tessera/datasets/internal/stored_numbers.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

/// Rows of a column that Arrow decodes at a time.
constexpr int64_t block_rows = 65536;

constexpr ArrowNumbers arrow_numbers[] = {{arrow::Type::INT8, at::kChar, at::kChar},
                                          {arrow::Type::UINT8, at::kByte, at::kByte},
                                          {arrow::Type::INT16, at::kShort, at::kShort},
                                          {arrow::Type::UINT16, at::kUInt16, at::kInt},
                                          {arrow::Type::INT32, at::kInt, at::kInt},
                                          {arrow::Type::UINT32, at::kUInt32, at::kLong},
                                          {arrow::Type::INT64, at::kLong, at::kLong},
                                          {arrow::Type::UINT64, at::kUInt64, at::kLong},
                                          {arrow::Type::HALF_FLOAT, at::kHalf, at::kHalf},
                                          {arrow::Type::FLOAT, at::kFloat, at::kFloat},
                                          {arrow::Type::DOUBLE, at::kDouble, at::kDouble},
                                          {arrow::Type::DATE32, at::kInt, at::kLong},
                                          {arrow::Type::DATE64, at::kLong, at::kLong},
                                          {arrow::Type::TIME32, at::kInt, at::kLong},
                                          {arrow::Type::TIME64, at::kLong, at::kLong},
                                          {arrow::Type::TIMESTAMP, at::kLong, at::kLong},
                                          {arrow::Type::DURATION, at::kLong, at::kLong},
                                          // Not stored as plain numbers.
                                          {arrow::Type::BOOL, at::kBool, at::kBool},
                                          {arrow::Type::DECIMAL32, at::kDouble, at::kDouble},
                                          {arrow::Type::DECIMAL64, at::kDouble, at::kDouble},
                                          {arrow::Type::DECIMAL128, at::kDouble, at::kDouble},
                                          {arrow::Type::DECIMAL256, at::kDouble, at::kDouble},
                                          {arrow::Type::NA, at::kDouble, at::kDouble}};

/// Returns the type in which an extension's values are stored.
const arrow::DataType& stored_type(const arrow::DataType& type) {
  if (type.id() != arrow::Type::EXTENSION) return type;
  return stored_type(*static_cast<const arrow::ExtensionType&>(type).storage_type());
}

const arrow::Array& stored_array(const arrow::Array& array) {
  if (array.type_id() != arrow::Type::EXTENSION) return array;
  return stored_array(*static_cast<const arrow::ExtensionArray&>(array).storage());
}

/// Returns the type of the numbers in a column, which may be in lists of a fixed size; null for a
/// column that is not numeric.
const ArrowNumbers* find_numbers(const arrow::DataType& column) {
  const arrow::DataType& type = stored_type(column);
  if (type.id() == arrow::Type::FIXED_SIZE_LIST) {
    return find_numbers(*static_cast<const arrow::FixedSizeListType&>(type).value_type());
  }
  const auto* const it =
      std::find_if(std::begin(arrow_numbers), std::end(arrow_numbers),
                   [&](const ArrowNumbers& numbers) { return numbers.type == type.id(); });
  return it == std::end(arrow_numbers) ? nullptr : it;
}

/// Returns the shape of a row of numbers.
Shape row_shape(const arrow::DataType& column) {
  const arrow::DataType& type = stored_type(column);
  if (type.id() != arrow::Type::FIXED_SIZE_LIST) return {};
  const auto& list = static_cast<const arrow::FixedSizeListType&>(type);
  Shape shape = row_shape(*list.value_type());
  shape.insert(shape.begin(), list.list_size());
  return shape;
}

/// Whether a column is the struct in which Hugging Face's programs store a picture or a sound.
bool is_media(const arrow::DataType& type) {
  if (type.id() != arrow::Type::STRUCT || type.num_fields() != 2) return false;
  return type.field(0)->name() == "bytes" && type.field(1)->name() == "path" &&
         arrow::is_base_binary_like(type.field(0)->type()->id());
}

bool is_text(const arrow::DataType& column) {
  const arrow::DataType& type = stored_type(column);
  if (type.id() == arrow::Type::DICTIONARY) {
    const auto& dictionary = static_cast<const arrow::DictionaryType&>(type);
    return arrow::is_base_binary_like(dictionary.value_type()->id());
  }
  return arrow::is_base_binary_like(type.id()) || arrow::is_binary_view_like(type.id()) ||
         type.id() == arrow::Type::FIXED_SIZE_BINARY || is_media(type);
}

std::string_view text_at(const arrow::Array& texts, int64_t row) {
  if (arrow::is_large_binary_like(texts.type_id())) {
    return static_cast<const arrow::LargeBinaryArray&>(texts).GetView(row);
  }
  if (arrow::is_binary_view_like(texts.type_id())) {
    return static_cast<const arrow::BinaryViewArray&>(texts).GetView(row);
  }
  if (texts.type_id() == arrow::Type::FIXED_SIZE_BINARY) {
    return static_cast<const arrow::FixedSizeBinaryArray&>(texts).GetView(row);
  }
  return static_cast<const arrow::BinaryArray&>(texts).GetView(row);
}

/// Returns whether each value is missing: bool (rows).
at::Tensor missing_of(const arrow::Array& array) {
  const int64_t rows = array.length();
  // Arrow keeps no bitmap if all values are present, or all are missing.
  if (array.null_bitmap_data() == nullptr) return at::full({rows}, array.null_count() > 0);
  const at::Tensor missing = at::empty({rows}, at::kBool);
  bool* flag = missing.mutable_data_ptr<bool>();
  for (int64_t row = 0; row < rows; ++row) {
    *flag++ = !arrow::bit_util::GetBit(array.null_bitmap_data(), array.offset() + row);
  }
  return missing;
}

/// Whether an integer that is not missing has no equal double.
bool has_inexact(const at::Tensor& numbers, const arrow::Array& array) {
  const bool is_unsigned = numbers.scalar_type() == at::kUInt64;
  if (numbers.numel() == 0 || (numbers.scalar_type() != at::kLong && !is_unsigned)) return false;
  at::Tensor integers = numbers.view(at::kLong);
  if (array.null_count() > 0) integers = integers.masked_fill(missing_of(array), 0);
  const auto [least, greatest] = integers.aminmax();
  constexpr int64_t exact = int64_t{1} << 53;
  if (is_unsigned && least.item<int64_t>() < 0) return true;
  if (least.item<int64_t>() >= -exact && greatest.item<int64_t>() <= exact) return false;
  return integers.to(at::kDouble).to(at::kLong).ne(integers).any().item<bool>();
}

/// Returns a tensor in which the marked rows are NaN, of a dtype that has it.
at::Tensor with_missing(at::Tensor numbers, const arrow::Array& array) {
  if (array.null_count() == 0) return numbers;
  if (!at::isFloatingType(numbers.scalar_type())) numbers = numbers.to(at::kDouble);
  Shape shape(static_cast<size_t>(numbers.dim()), 1);
  shape[0] = numbers.size(0);
  return numbers.masked_fill_(missing_of(array).view(shape),
                              std::numeric_limits<double>::quiet_NaN());
}

template <class Decimal, class Array>
void copy_decimals(const arrow::Array& array, double* out) {
  const auto& values = static_cast<const Array&>(array);
  const int32_t scale = static_cast<const arrow::DecimalType&>(*array.type()).scale();
  for (int64_t row = 0; row < array.length(); ++row) {
    *out++ = Decimal(values.GetValue(row)).ToDouble(scale);
  }
}

/// Copies the numbers of an array; missing ones have any value.
at::Tensor copied_numbers(const arrow::Array& array, at::ScalarType dtype) {
  const int64_t rows = array.length();
  const at::Tensor numbers = at::zeros({rows}, dtype);
  switch (array.type_id()) {
    case arrow::Type::BOOL: {
      const auto& values = static_cast<const arrow::BooleanArray&>(array);
      bool* value = numbers.mutable_data_ptr<bool>();
      for (int64_t row = 0; row < rows; ++row) *value++ = values.Value(row);
      break;
    }
    case arrow::Type::DECIMAL32:
      copy_decimals<arrow::Decimal32, arrow::Decimal32Array>(array,
                                                             numbers.mutable_data_ptr<double>());
      break;
    case arrow::Type::DECIMAL64:
      copy_decimals<arrow::Decimal64, arrow::Decimal64Array>(array,
                                                             numbers.mutable_data_ptr<double>());
      break;
    case arrow::Type::DECIMAL128:
      copy_decimals<arrow::Decimal128, arrow::Decimal128Array>(array,
                                                               numbers.mutable_data_ptr<double>());
      break;
    case arrow::Type::DECIMAL256:
      copy_decimals<arrow::Decimal256, arrow::Decimal256Array>(array,
                                                               numbers.mutable_data_ptr<double>());
      break;
    case arrow::Type::NA:
      break;
    default: {
      if (rows == 0) break;
      const auto size = static_cast<int64_t>(numbers.element_size());
      const uint8_t* bytes = array.data()->buffers[1]->data() + array.offset() * size;
      std::copy_n(bytes, rows * size, static_cast<uint8_t*>(numbers.mutable_data_ptr()));
    }
  }
  return numbers;
}

}  // namespace

ParquetColumn::ParquetColumn(std::string where, const arrow::DataType& type)
    : where_(std::move(where)), numbers_(find_numbers(type)), is_text_(is_text(type)) {
  if (numbers_ == nullptr && !is_text_) {
    throw FileError(where_, "a column of numbers, bools, times or texts", one_line(type.ToString()),
                    "name the other columns in ParquetOptions");
  }
  if (numbers_ == nullptr) return;
  Shape shape = row_shape(type);
  shape.insert(shape.begin(), 0);
  chunks_ = {at::empty(shape, numbers_->dtype)};
}

void ParquetColumn::read(parquet::arrow::ColumnReader& reader, int64_t rows) {
  int64_t done = 0;
  while (done < rows) {
    std::shared_ptr<arrow::ChunkedArray> block;
    check(reader.NextBatch(std::min(block_rows, rows - done), &block));
    if (block == nullptr || block->length() == 0) break;
    for (const std::shared_ptr<arrow::Array>& chunk : block->chunks()) {
      check(chunk->Validate());
      if (is_text_) {
        add_texts(*chunk);
      } else {
        chunks_.push_back(numbers_of(*chunk));
      }
    }
    done += block->length();
  }
  if (done < rows) {
    throw FileError(where_, str(rows, " rows, as the file's footer says"), std::to_string(done),
                    damaged_fix);
  }
  // Chunks with missing values are floating point; cat() promotes the others.
  if (!is_text_) chunks_ = {at::cat(chunks_)};
}

Table::Column ParquetColumn::take() {
  if (is_text_) return std::move(texts_);
  return std::move(chunks_[0]);
}

std::string ParquetColumn::warning() const {
  if (!has_missing_ || !is_inexact_) return "";
  return str("Warning: [", where_,
             "] integers above 2^53 are rounded, as a column with missing values is float64. To "
             "fix: write it as texts, or as float64 to silence this.\n");
}

void ParquetColumn::check(const arrow::Status& status) const {
  if (status.ok()) return;
  throw FileError(where_, "a whole Parquet file", one_line(status.message(), 200), damaged_fix);
}

/// Returns the numbers of a chunk: (rows, …), missing ones as NaN.
at::Tensor ParquetColumn::numbers_of(const arrow::Array& chunk) {
  const arrow::Array& array = stored_array(chunk);
  if (array.type_id() != arrow::Type::FIXED_SIZE_LIST) return scalars_of(array);
  const auto& lists = static_cast<const arrow::FixedSizeListArray&>(array);
  const int64_t length = lists.list_type()->list_size();
  const at::Tensor values =
      numbers_of(*lists.values()->Slice(lists.value_offset(0), array.length() * length));
  Shape shape = values.sizes().vec();
  shape[0] = length;
  shape.insert(shape.begin(), array.length());
  has_missing_ = has_missing_ || array.null_count() > 0;
  return with_missing(values.view(shape), array);
}

at::Tensor ParquetColumn::scalars_of(const arrow::Array& array) {
  at::Tensor numbers = copied_numbers(array, numbers_->stored);
  has_missing_ = has_missing_ || array.null_count() > 0;
  is_inexact_ = is_inexact_ || has_inexact(numbers, array);
  if (array.null_count() > 0 || numbers_->dtype == numbers_->stored) {
    return with_missing(std::move(numbers), array);
  }
  return without_unsigned(numbers, where_, "write the column as int64 or float64")
      .to(numbers_->dtype);
}

void ParquetColumn::add_texts(const arrow::Array& chunk) {
  const arrow::Array& array = stored_array(chunk);
  const auto* encoded = array.type_id() == arrow::Type::DICTIONARY
                            ? static_cast<const arrow::DictionaryArray*>(&array)
                            : nullptr;
  const std::shared_ptr<arrow::Array> bytes =
      array.type_id() == arrow::Type::STRUCT
          ? static_cast<const arrow::StructArray&>(array).field(0)
          : nullptr;
  const arrow::Array& texts = encoded ? *encoded->dictionary() : bytes ? *bytes : array;
  for (int64_t row = 0; row < array.length(); ++row) {
    const bool missing = array.IsNull(row) || (bytes && bytes->IsNull(row));
    const int64_t index = encoded && !missing ? encoded->GetValueIndex(row) : row;
    if (missing) {
      texts_.emplace_back();
    } else if (index < 0 || index >= texts.length()) {
      throw FileError(where_, str("one of the ", texts.length(), " texts of a dictionary"),
                      str("number ", index), damaged_fix);
    } else {
      texts_.emplace_back(text_at(texts, index));
    }
  }
}

}  // namespace tessera::detail
