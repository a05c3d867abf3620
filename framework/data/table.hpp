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

/// Named columns in memory, each a tensor or texts (a dict of arrays, a pandas.DataFrame).
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
    /// Returns the tensor. Throws ConfigError for a column of texts.
    const at::Tensor& numbers() const;
    /// Returns the texts. Throws ConfigError for a column of numbers.
    const std::vector<std::string>& texts() const;

   private:
    std::variant<at::Tensor, std::vector<std::string>> values_;
  };

  Table() = default;
  /// Throws as add() does.
  Table(std::initializer_list<std::pair<std::string, Column>> columns);

  /// Appends a column. Throws ConfigError for an empty or existing name, ShapeError if the number
  /// of rows differs from the other columns' or a tensor has no row axis.
  void add(const std::string& name, Column column);
  /// Removes and returns a column. Throws ConfigError naming the nearest for an unknown name.
  Column pop(const std::string& name);

  /// Returns the number of rows; 0 without columns.
  int64_t rows() const { return columns_.empty() ? 0 : columns_[0].rows(); }
  const std::vector<std::string>& names() const { return names_; }
  bool has(const std::string& name) const;
  /// Returns a column. Throws ConfigError naming the nearest for an unknown name.
  const Column& operator[](const std::string& name) const;

  /// Returns the rows with these indices, in this order. Throws ShapeError for an index out of
  /// range.
  Table take(std::span<const int64_t> rows) const;
  /// Returns the columns with these names, or all, as one float32 tensor (rows, columns); a column
  /// with more axes is flattened into one for each element of a row. Throws ConfigError for texts
  /// or an unknown name.
  at::Tensor matrix(const std::vector<std::string>& names = {}) const;

 private:
  size_t index(const std::string& name) const;

  std::vector<std::string> names_;
  std::vector<Column> columns_;
};

}  // namespace tessera
