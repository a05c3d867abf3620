#include <tessera/datasets/arrow/read_parquet.hpp>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/util/bit_util.h>
#include <c10/core/InferenceMode.h>
#include <parquet/api/reader.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Rows of a column that Arrow decodes at a time.
constexpr int64_t block_rows = 65536;

/// Arrow's type of a numeric column, its dtype in Arrow's memory, and the dtype of the result.
struct ArrowNumbers {
  arrow::Type::type type;
  at::ScalarType stored;
  at::ScalarType dtype;
};
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
                                          {arrow::Type::DECIMAL128, at::kDouble, at::kDouble},
                                          {arrow::Type::NA, at::kDouble, at::kDouble}};

/// Returns null for a column that is not numeric.
const ArrowNumbers* find_numbers(const arrow::DataType& type) {
  const auto* const it =
      std::find_if(std::begin(arrow_numbers), std::end(arrow_numbers),
                   [&](const ArrowNumbers& numbers) { return numbers.type == type.id(); });
  return it == std::end(arrow_numbers) ? nullptr : it;
}

bool is_text(const arrow::DataType& type) {
  if (type.id() != arrow::Type::DICTIONARY) return arrow::is_base_binary_like(type.id());
  return is_text(*static_cast<const arrow::DictionaryType&>(type).value_type());
}

std::string_view text_at(const arrow::Array& texts, int64_t row) {
  if (arrow::is_large_binary_like(texts.type_id())) {
    return static_cast<const arrow::LargeBinaryArray&>(texts).GetView(row);
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

/// A column of a file, read in blocks.
class ParquetColumn {
 public:
  /// `where` names the file and the column.
  ParquetColumn(std::string where, const arrow::DataType& type)
      : where_(std::move(where)), numbers_(find_numbers(type)), is_text_(is_text(type)) {
    if (numbers_ == nullptr && !is_text_) {
      throw FileError(where_, "a column of numbers, bools, times or texts",
                      one_line(type.ToString()), "name the other columns in ParquetOptions");
    }
    if (numbers_ != nullptr) chunks_ = {at::empty({0}, numbers_->dtype)};
  }

  /// Reads the first `rows` rows.
  void read(parquet::arrow::ColumnReader& reader, int64_t rows) {
    int64_t done = 0;
    while (done < rows) {
      std::shared_ptr<arrow::ChunkedArray> block;
      check(reader.NextBatch(std::min(block_rows, rows - done), &block));
      if (block == nullptr || block->length() == 0) break;
      for (const std::shared_ptr<arrow::Array>& chunk : block->chunks()) {
        check(chunk->Validate());
        is_text_ ? add_texts(*chunk) : add_numbers(*chunk);
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

  /// Moves out the values that were read.
  Table::Column take() {
    if (is_text_) return std::move(texts_);
    return std::move(chunks_[0]);
  }
  bool holds_texts() const { return is_text_; }

  void check(const arrow::Status& status) const {
    if (status.ok()) return;
    throw FileError(where_, "a whole Parquet file", one_line(status.message(), 200), damaged_fix);
  }

  static constexpr const char* damaged_fix = "write or fetch the file again";

 private:
  void add_numbers(const arrow::Array& array) {
    at::Tensor numbers = stored_numbers(array);
    if (array.null_count() > 0) {
      if (!at::isFloatingType(numbers_->dtype)) numbers = numbers.to(at::kDouble);
      numbers.masked_fill_(missing_of(array), std::numeric_limits<double>::quiet_NaN());
    } else if (numbers_->dtype != numbers_->stored) {
      numbers = numbers.to(numbers_->dtype);
      if (numbers_->stored == at::kUInt64 && numbers.lt(0).any().item<bool>()) {
        throw FileError(where_, "integers below 2^63", "larger ones",
                        "write the column as int64 or float64");
      }
    }
    chunks_.push_back(std::move(numbers));
  }

  /// Copies the numbers of a chunk; missing ones have any value.
  at::Tensor stored_numbers(const arrow::Array& array) const {
    const int64_t rows = array.length();
    const at::Tensor numbers = at::zeros({rows}, numbers_->stored);
    if (array.type_id() == arrow::Type::BOOL) {
      const auto& values = static_cast<const arrow::BooleanArray&>(array);
      bool* value = numbers.mutable_data_ptr<bool>();
      for (int64_t row = 0; row < rows; ++row) *value++ = values.Value(row);
    } else if (array.type_id() == arrow::Type::DECIMAL128) {
      const auto& values = static_cast<const arrow::Decimal128Array&>(array);
      const int32_t scale = static_cast<const arrow::Decimal128Type&>(*array.type()).scale();
      double* value = numbers.mutable_data_ptr<double>();
      for (int64_t row = 0; row < rows; ++row) {
        *value++ = arrow::Decimal128(values.GetValue(row)).ToDouble(scale);
      }
    } else if (array.type_id() != arrow::Type::NA && rows > 0) {
      const auto size = static_cast<int64_t>(numbers.element_size());
      const uint8_t* bytes = array.data()->buffers[1]->data() + array.offset() * size;
      std::copy_n(bytes, rows * size, static_cast<uint8_t*>(numbers.mutable_data_ptr()));
    }
    return numbers;
  }

  void add_texts(const arrow::Array& array) {
    const auto* encoded = array.type_id() == arrow::Type::DICTIONARY
                              ? static_cast<const arrow::DictionaryArray*>(&array)
                              : nullptr;
    const arrow::Array& dictionary = encoded == nullptr ? array : *encoded->dictionary();
    for (int64_t row = 0; row < array.length(); ++row) {
      const int64_t index =
          encoded == nullptr || array.IsNull(row) ? row : encoded->GetValueIndex(row);
      if (array.IsNull(row)) {
        texts_.emplace_back();
      } else if (index < 0 || index >= dictionary.length()) {
        throw FileError(where_, str("one of the ", dictionary.length(), " texts of a dictionary"),
                        str("number ", index), damaged_fix);
      } else {
        texts_.emplace_back(text_at(dictionary, index));
      }
    }
  }

  std::string where_;
  const ArrowNumbers* numbers_;
  bool is_text_;
  std::vector<at::Tensor> chunks_;
  std::vector<std::string> texts_;
};

/// Returns the value of a result, or throws Arrow's error as a FileError of the file.
template <class Value>
Value value_or_throw(arrow::Result<Value> result, const std::string& path) {
  if (result.ok()) return std::move(result).ValueUnsafe();
  throw FileError(path, "a Parquet file", one_line(result.status().message(), 200),
                  ParquetColumn::damaged_fix);
}

using ParquetReader = std::unique_ptr<parquet::arrow::FileReader>;

ParquetReader open_parquet(const std::string& path,
                           std::shared_ptr<parquet::FileMetaData> metadata = nullptr) {
  parquet::ReaderProperties properties = parquet::default_reader_properties();
  properties.set_page_checksum_verification(true);
  parquet::arrow::FileReaderBuilder builder;
  const auto file = value_or_throw(arrow::io::ReadableFile::Open(path), path);
  const arrow::Status status = builder.Open(file, properties, std::move(metadata));
  if (!status.ok()) value_or_throw<bool>(status, path);
  // Read block by block instead of buffering the file first.
  parquet::ArrowReaderProperties blocks = parquet::default_arrow_reader_properties();
  blocks.set_pre_buffer(false);
  builder.properties(blocks);
  return value_or_throw(builder.Build(), path);
}

/// Returns the indices of the columns to keep.
std::vector<int> selected_fields(const arrow::Schema& schema, const std::string& path,
                                 const std::vector<std::string>& columns) {
  const std::vector<std::string> names = schema.field_names();
  for (const std::string& name : columns) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    throw ConfigError(path, str("one of the ", names.size(), " columns"), in_quotes(name),
                      suggestion(name, names));
  }
  std::vector<int> fields;
  for (int i = 0; i < schema.num_fields(); ++i) {
    const std::string& name = schema.field(i)->name();
    if (!columns.empty() && std::find(columns.begin(), columns.end(), name) == columns.end()) {
      continue;
    }
    if (name.empty() || std::count(names.begin(), names.end(), name) > 1) {
      throw FileError(path, "each column has a name of its own",
                      name.empty() ? "an empty name" : in_quotes(name) + " twice",
                      "write the file with other names");
    }
    fields.push_back(i);
  }
  return fields;
}

Table read_columns(const std::string& path, const ParquetOptions& options) {
  const ParquetReader file = open_parquet(path);
  const std::shared_ptr<parquet::FileMetaData> metadata = file->parquet_reader()->metadata();
  std::shared_ptr<arrow::Schema> schema;
  const arrow::Status status = file->GetSchema(&schema);
  if (!status.ok()) value_or_throw<bool>(status, path);
  const std::vector<int> fields = selected_fields(*schema, path, options.columns);
  const int64_t rows = std::min(options.rows.value_or(metadata->num_rows()), metadata->num_rows());
  std::vector<ParquetColumn> columns;
  for (const int field : fields) {
    columns.emplace_back(str(path, ", column ", in_quotes(schema->field(field)->name())),
                         *schema->field(field)->type());
  }
  // Columns differ in cost, and text columns cost most: they come first, and each thread takes the
  // next column when it is done.
  std::vector<size_t> order(fields.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_partition(order, [&](size_t i) { return columns[i].holds_texts(); });
  std::atomic<size_t> next{0};
  const int64_t threads = std::min<int64_t>(at::get_num_threads(), std::ssize(fields));
  at::parallel_for(0, threads, 1, [&](int64_t, int64_t) {
    const c10::InferenceMode inference;
    const ParquetReader thread_file = open_parquet(path, metadata);
    for (size_t taken = 0; (taken = next++) < order.size();) {
      const size_t i = order[taken];
      std::unique_ptr<parquet::arrow::ColumnReader> reader;
      columns[i].check(thread_file->GetColumn(fields[i], &reader));
      columns[i].read(*reader, rows);
    }
  });
  Table table;
  for (size_t i = 0; i < fields.size(); ++i) {
    table.add(schema->field(fields[i])->name(), columns[i].take());
  }
  return table;
}

}  // namespace

Table datasets::read_parquet(const std::string& path, const ParquetOptions& options) {
  const c10::InferenceMode inference;
  if (options.rows && *options.rows < 0) {
    throw ConfigError(path, "a number of rows", std::to_string(*options.rows),
                      "leave it out for all rows");
  }
  // Throws the usual errors for a missing file and for one that is not regular.
  const InputFile file(path);
  try {
    return read_columns(path, options);
  } catch (const parquet::ParquetException& error) {
    throw FileError(path, "a Parquet file", one_line(error.what(), 200),
                    ParquetColumn::damaged_fix);
  }
}

}  // namespace tessera
