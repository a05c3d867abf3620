#include <tessera/datasets/read_csv.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/datasets/files/csv.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/comm/dtype_name.hpp>

namespace tessera {

using namespace detail;

namespace {

struct CsvDtype {
  const char* name;
  CsvKind kind;
  at::ScalarType dtype;
};
constexpr CsvDtype csv_dtypes[] = {
    {"text", CsvKind::text, at::kByte},         {"bool", CsvKind::boolean, at::kBool},
    {"int64", CsvKind::int64, at::kLong},       {"int32", CsvKind::int64, at::kInt},
    {"float64", CsvKind::float64, at::kDouble}, {"float32", CsvKind::float64, at::kFloat}};

const CsvDtype& csv_dtype(const std::string& name, const std::string& column) {
  std::vector<std::string> known;
  for (const CsvDtype& dtype : csv_dtypes) {
    if (name == dtype.name) return dtype;
    known.emplace_back(dtype.name);
  }
  throw ConfigError("read_csv, column " + in_quotes(column), "a dtype of columns", in_quotes(name),
                    suggestion(name, known));
}

/// Returns the numbers of a column in the dtype of its kind.
at::Tensor numbers_of(CsvColumn& column, int64_t rows) {
  if (column.kind == CsvKind::float64) {
    const at::Tensor numbers = at::empty({rows}, at::kDouble);
    column.take(numbers.mutable_data_ptr<double>());
    return numbers;
  }
  const at::Tensor numbers = at::empty({rows}, at::kLong);
  column.take(numbers.mutable_data_ptr<int64_t>());
  return column.kind == CsvKind::boolean ? numbers.to(at::kBool) : numbers;
}

}  // namespace

Table datasets::read_csv(const std::string& path, const CsvOptions& options) {
  CsvReadOptions read_options{
      .dialect = {.delimiter = options.delimiter,
                  .comment = options.comment,
                  .skip_initial_space = options.skip_initial_space,
                  .short_rows = options.short_rows},
      .encoding = options.encoding,
      .skip_rows = options.skip_rows,
      .header = options.header,
      .names = options.names,
      .columns = options.columns,
      .values = {.missing = {options.missing.begin(), options.missing.end()},
                 .decimal = options.decimal,
                 .thousands = options.thousands},
      .rows = options.rows};
  for (const auto& [name, dtype] : options.dtypes) {
    read_options.kinds[name] = csv_dtype(dtype, name).kind;
  }
  CsvFile file = read_csv_file(path, read_options);
  Table table;
  for (CsvColumn& column : file.columns) {
    if (column.kind == CsvKind::text) {
      table.add(column.name, column.take_texts());
      continue;
    }
    at::Tensor numbers = numbers_of(column, file.rows);
    const auto requested = options.dtypes.find(column.name);
    if (requested != options.dtypes.end()) {
      const at::ScalarType dtype = csv_dtype(requested->second, column.name).dtype;
      const bool fits = dtype != at::kInt || numbers.numel() == 0 ||
                        numbers.to(at::kInt).eq(numbers).all().item<bool>();
      if (!fits) {
        throw FileError(path + ", column " + in_quotes(column.name), "numbers of 32 bits",
                        "larger ones", R"(let it be "int64")");
      }
      numbers = numbers.to(dtype);
    }
    table.add(column.name, std::move(numbers));
  }
  return table;
}

std::string datasets::describe(const Table& table) {
  std::string text = str(table.rows(), table.rows() == 1 ? " row" : " rows");
  const char* separator = ": ";
  for (const std::string& name : table.names()) {
    const Table::Column& column = table[name];
    text += str(separator, one_line(name), " ",
                column.is_text() ? "text" : dtype_name(column.numbers().scalar_type()));
    if (!column.is_text() && column.numbers().dim() > 1) {
      text += " " + to_string(column.numbers().sizes().slice(1).vec());
    }
    separator = ", ";
  }
  return text;
}

}  // namespace tessera
