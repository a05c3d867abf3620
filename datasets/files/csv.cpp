#include <tessera/datasets/files/csv.hpp>

#include <algorithm>
#include <cctype>
#include <future>
#include <iostream>
#include <set>
#include <span>
#include <string_view>
#include <thread>

#include <tessera/datasets/files/csv_rows.hpp>
#include <tessera/datasets/files/csv_text.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

constexpr size_t max_columns = 100'000;
constexpr size_t max_row_bytes = size_t{64} << 20;
constexpr int64_t max_threads = 8;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// One pass over a CSV file.
class CsvReader {
 public:
  CsvReader(const std::string& path, const CsvReadOptions& options)
      : path_(path),
        options_(options),
        dialect_(options.dialect),
        file_(path, options.encoding),
        values_(options.values),
        left_(options.rows.value_or(INT64_MAX)) {
    for (const char* text :
         {"", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None", "<NA>",
          "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN"}) {
      values_.missing.insert(text);
    }
  }

  /// Reads the file. `texts`: indices of columns known to be text.
  CsvFile read(const std::set<size_t>& texts) {
    fill();
    if (buffer_.starts_with(byte_order_mark)) begin_ = byte_order_mark.size();
    for (int64_t i = 0; i < options_.skip_rows; ++i) skip_line();
    read_names(texts);
    while (left_ > 0 && (begin_ < buffer_.size() || !ended_)) read_block();
    finish();
    return std::move(result_);
  }
  /// Returns the text columns to read again: their values before the first text were dropped.
  const std::set<size_t>& columns_to_reread() const { return columns_to_reread_; }
  /// Returns a line for each column that is not what the file says.
  const std::string& warnings() const { return warnings_; }

 private:
  [[noreturn]] void fail(const std::string& where, const std::string& expected,
                         const std::string& received, const std::string& fix) const {
    throw FileError(path_ + where, expected, received, fix);
  }

  /// Returns ", line 12" for a byte of the buffer.
  std::string line_at(size_t offset) const { return file_.line_at(before_ + offset); }

  /// Drops the rows that were read and appends a block to the rest.
  void fill() {
    if (buffer_.size() - begin_ > max_row_bytes) {
      fail(line_at(begin_), str("a row of at most ", max_row_bytes, " bytes"), "a longer one",
           "look for a quote that does not end");
    }
    before_ += begin_;
    buffer_.erase(0, begin_);
    begin_ = 0;
    const size_t old = buffer_.size();
    buffer_.resize(old + options_.block_bytes);
    buffer_.resize(old + file_.read(std::as_writable_bytes(std::span(buffer_).subspan(old))));
    ended_ = buffer_.size() < old + options_.block_bytes;
    const size_t zero = buffer_.find('\0', old);
    if (zero != std::string::npos) {
      fail(line_at(zero), "a text without zero bytes", str("one at byte ", before_ + zero),
           R"(save the file as UTF-8, or pass encoding = "utf-16")");
    }
    // Terminates the last row, so that a search for a row's end needs no bounds check.
    if (ended_ && !buffer_.empty() && buffer_.back() != '\n') buffer_ += '\n';
  }

  /// Skips the rest of a line.
  void skip_line() {
    for (;;) {
      const size_t end = buffer_.find_first_of("\r\n", begin_);
      // The \n of \r\n may not be read yet.
      const bool is_cut =
          end != std::string::npos && buffer_[end] == '\r' && end + 1 == buffer_.size() && !ended_;
      if (end != std::string::npos && !is_cut) {
        begin_ = end + (buffer_.compare(end, 2, "\r\n") == 0 ? 2 : 1);
        return;
      }
      begin_ = std::min(end, buffer_.size());
      if (ended_) return;
      fill();
    }
  }

  /// Returns row ends that split the complete rows of the buffer into about equal chunks; reads on
  /// until there is a complete row.
  std::vector<size_t> complete_row_ends(size_t chunks) {
    for (;;) {
      std::vector<size_t> ends =
          csv_row_ends(std::string_view(buffer_).substr(begin_), dialect_, chunks);
      if (ends.back() > 0 || begin_ == buffer_.size()) return ends;
      if (ended_) {
        fail(line_at(begin_), "a quote that ends", "the end of the file inside it",
             "close the quote in this row or below");
      }
      fill();
    }
  }

  /// Skips empty rows, so that the buffer begins with a complete row; returns false at the end.
  bool find_row() {
    for (;;) {
      const size_t end = begin_ + complete_row_ends(1).back();
      while (begin_ < end) {
        const char* next = dialect_.empty_row_end(buffer_.data() + begin_);
        if (next == nullptr) break;
        begin_ = static_cast<size_t>(next - buffer_.data());
      }
      if (begin_ < end) return true;
      if (ended_) return false;
      fill();
    }
  }

  /// Returns the fields of the first row that is not empty.
  std::vector<std::string> first_row(size_t& end) {
    if (!find_row()) fail("", "a row of fields", "an empty file", "name another file");
    const char* at = dialect_.first_field(buffer_.data() + begin_);
    std::vector<std::string> fields;
    std::string unquoted;
    do {
      const CsvField field = csv_field_at(at, dialect_, unquoted);
      fields.emplace_back(field.text);
      if (fields.size() > max_columns) {
        fail(line_at(begin_), str("at most ", max_columns, " columns"), "more",
             "name another delimiter, or write a row on each line");
      }
      at = field.end;
    } while (dialect_.next_field(at));
    end = static_cast<size_t>(dialect_.next_row(at) - buffer_.data());
    return fields;
  }

  void read_names(const std::set<size_t>& texts) {
    size_t end = 0;
    std::vector<std::string> names = first_row(end);
    if (options_.header) {
      begin_ = end;
    } else {
      for (size_t i = 0; i < names.size(); ++i) names[i] = std::to_string(i);
    }
    // An index without a name is not in the header.
    const bool has_index = options_.header && options_.names.size() == names.size() + 1;
    if (!options_.names.empty() && options_.names.size() != names.size() && !has_index) {
      throw ConfigError(path_, str(names.size(), " names, one for each column"),
                        std::to_string(options_.names.size()), "name all columns of the file");
    }
    if (!options_.names.empty()) names = options_.names;
    // As in pandas: a column without a name is named by its number, and a second "x" is "x.1".
    std::set<std::string> seen;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty()) names[i] = str("Unnamed: ", i);
      const std::string name = names[i];
      for (size_t n = 1; !seen.insert(names[i]).second; ++n) names[i] = str(name, ".", n);
    }
    const auto check = [&](const std::string& name) {
      if (seen.contains(name)) return;
      throw ConfigError(path_, str("one of the ", names.size(), " columns"), in_quotes(name),
                        suggestion(name, names));
    };
    for (const std::string& name : options_.columns) check(name);
    for (const auto& [name, kind] : options_.kinds) check(name);
    const std::set<std::string> selected_names(options_.columns.begin(), options_.columns.end());
    for (size_t i = 0; i < names.size(); ++i) {
      CsvPlan plan{.selected = selected_names.empty() || selected_names.contains(names[i])};
      if (texts.contains(i)) plan.kind = CsvKind::text;
      if (const auto it = options_.kinds.find(names[i]); it != options_.kinds.end()) {
        plan.kind_required = true;
        plan.kind = it->second;
      }
      plans_.push_back(plan);
      result_.columns.push_back({.name = names[i], .kind = plan.kind, .chunks = {}});
    }
  }

  size_t thread_count() const {
    // Only a single thread knows which rows are the first ones.
    if (options_.rows) return 1;
    const int64_t cores = std::max(1U, std::thread::hardware_concurrency());
    return static_cast<size_t>(options_.threads > 0 ? options_.threads
                                                    : std::min(cores, max_threads));
  }

  void read_block() {
    const std::vector<size_t> ends = complete_row_ends(thread_count());
    std::vector<CsvChunk> chunks;
    size_t from = 0;
    for (const size_t end : ends) {
      chunks.push_back({std::string_view(buffer_).substr(begin_ + from, end - from), left_});
      from = end;
      for (const CsvPlan& plan : plans_) chunks.back().builders.emplace_back(plan, values_);
    }
    std::vector<std::future<void>> others;
    for (size_t i = 1; i < chunks.size(); ++i) {
      others.push_back(
          std::async(std::launch::async, [&, i] { add_csv_rows(chunks[i], dialect_, plans_); }));
    }
    add_csv_rows(chunks[0], dialect_, plans_);
    for (std::future<void>& other : others) other.get();
    for (CsvChunk& chunk : chunks) append(chunk);
    begin_ += from;
    if (!ended_) fill();
  }

  void append(CsvChunk& chunk) {
    if (chunk.error) {
      const CsvError& error = *chunk.error;
      const size_t offset = static_cast<size_t>(chunk.text.data() - buffer_.data()) + error.offset;
      const std::string column = error.field == plans_.size()
                                     ? ""
                                     : ", column " + in_quotes(result_.columns[error.field].name);
      const bool may_be_index = options_.header && column.empty() &&
                                result_.rows + error.row == 0 &&
                                error.received == std::to_string(plans_.size() + 1);
      fail(str(", row ", result_.rows + error.row, line_at(offset), column), error.expected,
           error.received,
           error.fix + (may_be_index ? "; if all rows have one field more, the first column may be "
                                       "an index without a name: pass names of all columns"
                                     : ""));
    }
    result_.rows += chunk.rows;
    left_ -= chunk.rows;
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (!plans_[i].selected || chunk.rows == 0) continue;
      CsvColumn& column = result_.columns[i];
      CsvColumnChunk& column_chunk = chunk.builders[i].chunk;
      column.kind = joined_kind(column.kind, column_chunk.kind);
      if (column_chunk.has_missing && column.kind == CsvKind::int64) column.kind = CsvKind::float64;
      // Later rows are likely of the kind found so far.
      plans_[i].kind = column.kind;
      column.chunks.push_back(std::move(column_chunk));
    }
  }

  /// Makes a text of a column whose integers exceed int64, and warns of one whose integers become
  /// other doubles, since values are missing.
  void check_integers(CsvColumn& column, bool has_missing) {
    bool beyond_int64 = false, inexact = false;
    for (const CsvColumnChunk& chunk : column.chunks) {
      if (!chunk.integers_only || chunk.kind == CsvKind::boolean) return;
      beyond_int64 = beyond_int64 || chunk.beyond_int64;
      inexact = inexact || chunk.has_inexact();
    }
    if (beyond_int64) {
      column.kind = CsvKind::text;
    } else if (inexact && has_missing) {
      warnings_ += str("Warning: [", path_, ", column ", in_quotes(column.name),
                       "] integers above 2^53 are rounded, as a column with missing values is "
                       "float64. To fix: let it be \"text\", or \"float64\" to silence this.\n");
    }
  }

  void finish() {
    std::vector<CsvColumn> selected;
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (!plans_[i].selected) continue;
      CsvColumn& column = result_.columns[i];
      bool has_missing = false, needs_reread = false;
      for (const CsvColumnChunk& chunk : column.chunks) {
        has_missing = has_missing || chunk.has_missing;
        needs_reread = needs_reread || chunk.values_dropped ||
                       (chunk.kind != CsvKind::text && chunk.kind != CsvKind::none);
      }
      const bool narrow = column.kind == CsvKind::int64 || column.kind == CsvKind::boolean;
      if (column.kind == CsvKind::none || (narrow && has_missing)) column.kind = CsvKind::float64;
      const bool required = plans_[i].kind_required;
      if (column.kind == CsvKind::float64 && !required) check_integers(column, has_missing);
      if (column.kind == CsvKind::text && needs_reread) columns_to_reread_.insert(i);
      selected.push_back(std::move(column));
    }
    result_.columns = std::move(selected);
  }

  const std::string& path_;
  const CsvReadOptions& options_;
  CsvDialect dialect_;
  CsvText file_;
  CsvValueFormat values_;
  int64_t left_;
  std::string buffer_;
  size_t begin_ = 0;     ///< begin of the unread rows in the buffer
  uint64_t before_ = 0;  ///< bytes of the file before the buffer
  bool ended_ = false;
  std::vector<CsvPlan> plans_;
  std::set<size_t> columns_to_reread_;
  std::string warnings_;
  CsvFile result_;
};

void check_csv_options(const CsvReadOptions& options, const std::string& path) {
  const auto check_sign = [&](const char* option, char sign, std::string_view others) {
    const auto byte = static_cast<unsigned char>(sign);
    const bool is_taken = others.find(sign) != std::string_view::npos;
    if (byte > 0 && byte < 0x80 && !std::isalnum(byte) && !is_taken) return;
    throw ConfigError(path, str("a ", option, " that cannot occur in numbers, quotes or line ends"),
                      in_quotes(std::string_view(&sign, 1)), "name one like , ; or \\t");
  };
  const CsvDialectOptions& dialect = options.dialect;
  const CsvValueFormat& values = options.values;
  std::string others = "\"\r\n+-";
  check_sign("decimal", values.decimal, others + " \t");
  others += values.decimal;
  if (values.thousands) {
    check_sign("thousands", *values.thousands, others);
    others += *values.thousands;
  }
  // A quoted number may hold the delimiter as a decimal or thousands sign.
  check_sign("delimiter", dialect.delimiter, "\"\r\n.+-");
  if (dialect.comment) {
    check_sign("comment", *dialect.comment, others + dialect.delimiter + " \t");
  }
  if (options.skip_rows < 0) {
    throw ConfigError(path, "skip_rows is a number of lines", std::to_string(options.skip_rows),
                      "leave it out to skip none");
  }
  if (options.rows && *options.rows < 0) {
    throw ConfigError(path, "a number of rows", std::to_string(*options.rows),
                      "leave it out for all rows");
  }
}

}  // namespace

CsvFile read_csv_file(const std::string& path, const CsvReadOptions& options) {
  check_csv_options(options, path);
  std::set<size_t> texts;
  for (int attempt = 0; attempt < 2; ++attempt) {
    CsvReader reader(path, options);
    CsvFile file = reader.read(texts);
    if (reader.columns_to_reread().empty()) {
      std::cerr << reader.warnings();
      return file;
    }
    texts = reader.columns_to_reread();
  }
  throw FileError(path, "a file that stays as it is while it is read", "one that changes",
                  "read a copy of it");
}

}  // namespace tessera::detail
