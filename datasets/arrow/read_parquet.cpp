#include <tessera/datasets/arrow/read_parquet.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/api/reader.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>

#include <tessera/datasets/arrow/internal/parquet_column.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

namespace {

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
  std::stable_partition(order.begin(), order.end(),
                        [&](size_t i) { return columns[i].holds_texts(); });
  std::atomic<size_t> next{0};
  const int64_t threads = std::min<int64_t>(at::get_num_threads(), std::ssize(fields));
  at::parallel_for(0, threads, 1, [&](int64_t, int64_t) {
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
    std::cerr << columns[i].warning();
    table.add(schema->field(fields[i])->name(), columns[i].take());
  }
  return table;
}

/// Reads the columns of one file; Arrow's exceptions become FileErrors.
Table read_parquet_file(const std::string& path, const ParquetOptions& options) {
  // Throws the usual errors for a missing file and for one that is not regular.
  const InputFile file(path);
  try {
    return read_columns(path, options);
  } catch (const parquet::ParquetException& error) {
    throw FileError(path, "a Parquet file", one_line(error.what(), 200),
                    ParquetColumn::damaged_fix);
  }
}

/// A file of a folder, and the texts in the names of the folders around it, such as `year=2024`.
struct ParquetPart {
  std::string path;
  std::vector<std::pair<std::string, std::string>> values;
};

/// The text for a missing value in the name of a folder, as Hive writes it.
constexpr const char* missing_part = "__HIVE_DEFAULT_PARTITION__";

/// Returns a text with each %41 replaced by its character.
std::string without_percents(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* at = text.data() + i;
    const bool is_code = at[0] == '%' && i + 2 < text.size() &&
                         std::from_chars(at + 1, at + 3, value, 16).ptr == at + 3;
    result += is_code ? static_cast<char>(value) : at[0];
    i += is_code ? 2 : 0;
  }
  return result;
}

/// Returns the Parquet files below a folder, in the order of their paths.
std::vector<ParquetPart> parts_of(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> paths;
  fs::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    const bool is_hidden = name.starts_with('.') || name.starts_with('_');
    if (is_hidden && it->is_directory(error)) it.disable_recursion_pending();
    if (!is_hidden && name.ends_with(".parquet") && it->is_regular_file(error)) {
      paths.push_back(it->path());
    }
  }
  if (error || paths.empty()) {
    throw FileError(folder, "a folder of .parquet files", error ? error.message() : "none in it",
                    "name another folder");
  }
  std::sort(paths.begin(), paths.end());
  std::vector<ParquetPart> parts;
  for (const std::string& path : paths) {
    parts.push_back({.path = path, .values = {}});
    for (const fs::path& around : fs::path(path).parent_path().lexically_relative(folder)) {
      const std::string text = around;
      const size_t sign = text.find('=');
      if (sign == std::string::npos || sign == 0) continue;
      parts.back().values.emplace_back(without_percents(text.substr(0, sign)),
                                       without_percents(text.substr(sign + 1)));
    }
  }
  return parts;
}

/// The columns of several files, joined.
class JoinedColumns {
 public:
  /// Appends a file's columns. Throws FileError naming the file if they are other ones.
  void add(const Table& table, const std::string& path) {
    if (names_.empty()) names_ = table.names();
    for (const std::string& name : names_) {
      const bool same = table.names().size() == names_.size() && table.has(name) &&
                        (files_ == 0 || fits(name, table[name]));
      if (!same) {
        throw FileError(path, "the columns of the other files: " + quoted_list(names_),
                        quoted_list(table.names()), "name columns that all files have");
      }
      if (table[name].is_text()) {
        const std::vector<std::string>& texts = table[name].texts();
        texts_[name].insert(texts_[name].end(), texts.begin(), texts.end());
      } else {
        numbers_[name].push_back(table[name].numbers());
      }
    }
    ++files_;
  }
  /// Moves out the columns whose names `is_selected` accepts.
  template <class Select>
  Table take(const Select& is_selected) {
    Table table;
    for (const std::string& name : names_) {
      if (!is_selected(name)) continue;
      if (texts_.contains(name)) {
        table.add(name, std::move(texts_[name]));
      } else {
        table.add(name, at::cat(numbers_[name]));
      }
    }
    return table;
  }

 private:
  bool fits(const std::string& name, const Table::Column& column) const {
    if (column.is_text()) return texts_.contains(name);
    const auto found = numbers_.find(name);
    return found != numbers_.end() &&
           found->second[0].sizes().slice(1) == column.numbers().sizes().slice(1);
  }

  int64_t files_ = 0;
  std::vector<std::string> names_;
  std::map<std::string, std::vector<std::string>> texts_;
  std::map<std::string, std::vector<at::Tensor>> numbers_;
};

/// Returns a column of the texts in folders' names: int64 or, with missing ones, float64, if all
/// are integers; otherwise texts.
Table::Column part_column(std::vector<std::string> texts) {
  const at::Tensor numbers = at::empty({std::ssize(texts)}, at::kLong);
  const at::Tensor missing = at::zeros({std::ssize(texts)}, at::kBool);
  bool all_integers = true;
  for (size_t row = 0; row < texts.size(); ++row) {
    if (texts[row] == missing_part) {
      missing.mutable_data_ptr<bool>()[row] = true;
      texts[row].clear();
      continue;
    }
    const char* end = texts[row].data() + texts[row].size();
    const auto read =
        std::from_chars(texts[row].data(), end, numbers.mutable_data_ptr<int64_t>()[row]);
    all_integers = all_integers && read.ec == std::errc() && read.ptr == end;
  }
  if (!all_integers) return texts;
  if (!missing.any().item<bool>()) return numbers;
  return numbers.to(at::kDouble).masked_fill_(missing, std::nan(""));
}

Table read_folder(const std::string& folder, const ParquetOptions& options) {
  const std::vector<ParquetPart> parts = parts_of(folder);
  const std::vector<std::string>& selected = options.columns;
  const auto is_selected = [&](const std::string& name) {
    return selected.empty() || std::find(selected.begin(), selected.end(), name) != selected.end();
  };
  ParquetOptions file_options = options;
  for (const auto& value : parts[0].values) std::erase(file_options.columns, value.first);
  JoinedColumns columns;
  std::map<std::string, std::vector<std::string>> values;
  const auto same_name = [](const auto& a, const auto& b) { return a.first == b.first; };
  for (const ParquetPart& part : parts) {
    if (file_options.rows == 0 && &part != &parts[0]) break;
    if (!std::ranges::equal(part.values, parts[0].values, same_name)) {
      throw FileError(part.path, "a path with values of the same names as " + parts[0].path,
                      "other names", "read each of the folders by itself");
    }
    const Table table = read_parquet_file(part.path, file_options);
    columns.add(table, part.path);
    for (const auto& [name, value] : part.values) {
      std::vector<std::string>& texts = values[name];
      texts.resize(texts.size() + static_cast<size_t>(table.rows()), value);
    }
    if (file_options.rows) *file_options.rows -= table.rows();
  }
  Table table = columns.take(is_selected);
  for (const auto& [name, first] : parts[0].values) {
    if (is_selected(name)) table.add(name, part_column(std::move(values[name])));
  }
  return table;
}

}  // namespace

Table datasets::read_parquet(const std::string& path, const ParquetOptions& options) {
  if (options.rows && *options.rows < 0) {
    throw ConfigError(path, "a number of rows", std::to_string(*options.rows),
                      "leave it out for all rows");
  }
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? read_folder(path, options)
                                                      : read_parquet_file(path, options);
}

}  // namespace tessera
