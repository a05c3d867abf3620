#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tessera {

/// Rows of named columns in memory, each a tensor or texts: a dict of arrays, a pandas.DataFrame.
/// Columns keep the order in which they were added. Copies share the columns' memory.
///
///     Table table = datasets::read_csv("heart.csv");
///     const at::Tensor target = table.pop("target").numbers();
class Table {
 public:
  /// The values of a column: a tensor (rows, …) on the host, or one text for each row.
  class Column {
   public:
    Column(at::Tensor numbers) : values_(std::move(numbers)) {}            // NOLINT: as data
    Column(std::vector<std::string> texts) : values_(std::move(texts)) {}  // NOLINT
    Column(std::initializer_list<const char*> texts)
        : values_(std::vector<std::string>(texts.begin(), texts.end())) {}
    bool is_text() const { return values_.index() == 1; }
    int64_t rows() const;
    /// Throws ConfigError for a column of texts.
    const at::Tensor& numbers() const;
    /// Throws ConfigError for a column of numbers.
    const std::vector<std::string>& texts() const;

   private:
    std::variant<at::Tensor, std::vector<std::string>> values_;
  };

  Table() = default;
  /// Throws as add() does.
  Table(std::initializer_list<std::pair<std::string, Column>> columns);

  /// Adds a column behind the others. Throws ConfigError for an empty name or one that is taken,
  /// ShapeError for another number of rows than the other columns have, or a tensor without rows'
  /// axis.
  void add(const std::string& name, Column column);
  /// Takes a column out and gives it. Throws ConfigError naming the nearest if there is none.
  Column pop(const std::string& name);

  /// 0 if there are no columns.
  int64_t rows() const { return columns_.empty() ? 0 : columns_[0].rows(); }
  const std::vector<std::string>& names() const { return names_; }
  bool has(const std::string& name) const;
  /// Throws ConfigError naming the nearest if there is none.
  const Column& operator[](const std::string& name) const;

  /// The rows of these numbers, in this order. Throws ShapeError for one outside the table.
  Table take(std::span<const int64_t> rows) const;
  /// The columns of these names, or all, as one float32 tensor (rows, columns); a column of more
  /// axes is one for each value of a row. Throws ConfigError for texts or an unknown name.
  at::Tensor matrix(const std::vector<std::string>& names = {}) const;

 private:
  size_t index(const std::string& name) const;

  std::vector<std::string> names_;
  std::vector<Column> columns_;
};

}  // namespace tessera
