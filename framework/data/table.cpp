#include <tessera/framework/data/table.hpp>

#include <algorithm>
#include <iterator>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

int64_t Table::Column::rows() const {
  return is_text() ? std::ssize(std::get<1>(values_)) : std::get<0>(values_).size(0);
}

const at::Tensor& Table::Column::numbers() const {
  if (const at::Tensor* numbers = std::get_if<at::Tensor>(&values_)) return *numbers;
  throw ConfigError("Table::Column::numbers", "the column holds numbers", "a column of texts",
                    "look the texts up first, by StringLookup or FeatureSpace");
}

const std::vector<std::string>& Table::Column::texts() const {
  if (const auto* texts = std::get_if<std::vector<std::string>>(&values_)) return *texts;
  throw ConfigError("Table::Column::texts", "the column holds texts", "a column of numbers",
                    "ask for its numbers()");
}

Table::Table(std::initializer_list<std::pair<std::string, Column>> columns) {
  for (const auto& [name, column] : columns) add(name, column);
}

void Table::add(const std::string& name, Column column) {
  if (name.empty() || has(name)) {
    throw ConfigError("Table::add", "each column has a name of its own",
                      name.empty() ? "an empty name" : str("a second ", in_quotes(name)),
                      "pop() the other, or choose another name");
  }
  const std::string where = str("Table::add(", in_quotes(name), ")");
  if (!column.is_text() && (!column.numbers().defined() || column.numbers().dim() == 0)) {
    throw ShapeError(where, "axis 0 of a column counts the rows",
                     column.numbers().defined() ? "shape ()" : "an undefined tensor",
                     "pass a tensor with an axis of rows");
  }
  if (!columns_.empty() && column.rows() != rows()) {
    throw ShapeError(where, str("all columns have ", rows(), " rows, as ", in_quotes(names_[0])),
                     str(column.rows()), "pass one value for each row");
  }
  names_.push_back(name);
  columns_.push_back(std::move(column));
}

Table::Column Table::pop(const std::string& name) {
  const auto at = static_cast<std::ptrdiff_t>(index(name));
  Column column = std::move(columns_[static_cast<size_t>(at)]);
  columns_.erase(columns_.begin() + at);
  names_.erase(names_.begin() + at);
  return column;
}

bool Table::has(const std::string& name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

const Table::Column& Table::operator[](const std::string& name) const {
  return columns_[index(name)];
}

size_t Table::index(const std::string& name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<size_t>(found - names_.begin());
  throw ConfigError("Table", str("one of the ", names_.size(), " columns"), in_quotes(name),
                    suggestion(name, names_));
}

Table Table::take(std::span<const int64_t> rows) const {
  for (const int64_t row : rows) {
    if (row >= 0 && row < this->rows()) continue;
    throw ShapeError("Table::take", str("a row number lies in [0, ", this->rows(), ")"), str(row),
                     "ask for rows that the table has");
  }
  const at::Tensor numbers = at::empty({std::ssize(rows)}, at::kLong);
  std::copy(rows.begin(), rows.end(), numbers.mutable_data_ptr<int64_t>());
  Table result;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].is_text()) {
      result.add(names_[i], columns_[i].numbers().index_select(0, numbers));
      continue;
    }
    std::vector<std::string> texts;
    for (const int64_t row : rows) texts.push_back(columns_[i].texts()[static_cast<size_t>(row)]);
    result.add(names_[i], std::move(texts));
  }
  return result;
}

at::Tensor Table::matrix(const std::vector<std::string>& names) const {
  std::vector<at::Tensor> tensors;
  for (const std::string& name : names.empty() ? names_ : names) {
    const Column& column = (*this)[name];
    if (column.is_text()) {
      throw ConfigError("Table::matrix", "all columns of a matrix are numbers",
                        str("texts in ", in_quotes(name)),
                        "name the columns of numbers, or look the texts up by FeatureSpace");
    }
    tensors.push_back(column.numbers().reshape({rows(), -1}).to(at::kFloat));
  }
  if (tensors.empty()) {
    throw ConfigError("Table::matrix", "a matrix has columns", "a table without any",
                      "add() a column first");
  }
  return at::cat(tensors, 1);
}

}  // namespace tessera
