#include <tessera/datasets/files/csv_rows.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

/// Adds missing values to the columns from `field` on; returns false if one must not have any.
bool fill_row(CsvChunk& chunk, size_t& field, const std::vector<CsvPlan>& plans) {
  for (; field < plans.size(); ++field) {
    if (plans[field].selected && !chunk.builders[field].add("")) return false;
  }
  return true;
}

/// Returns the error of a value that is not of its column's kind.
CsvError wrong_kind(size_t offset, const CsvChunk& chunk, size_t field, CsvKind kind,
                    std::string_view text) {
  return {offset,          chunk.rows,
          field,           "a value of kind " + csv_kind_name(kind),
          in_quotes(text), "correct it, or let the column be text"};
}

/// Returns the error of a row with `found` fields.
CsvError wrong_length(size_t offset, const CsvChunk& chunk, size_t found, size_t count) {
  const std::string rule = str(count, count == 1 ? " field" : " fields", " as in the first row");
  std::string fix = "correct the row, or name another delimiter";
  if (found < count) fix += "; short_rows = true reads the rest of the row as missing";
  return {offset, chunk.rows, count, rule, std::to_string(found), fix};
}

bool add_row(const char*& at, const char* begin, const char* end, const CsvDialect& dialect,
             const std::vector<CsvPlan>& plans, CsvChunk& chunk, std::string& unquoted) {
  const auto row_begin = static_cast<size_t>(at - begin);
  const size_t count = plans.size();
  size_t field = 0;
  at = dialect.first_field(at);
  do {
    const bool selected = field < count && plans[field].selected;
    const char* stop = selected ? chunk.builders[field].add_number(at, end, dialect) : nullptr;
    if (!stop) {
      const CsvField parsed = csv_field_at(at, dialect, unquoted);
      if (selected && !chunk.builders[field].add(parsed.text)) {
        chunk.error = wrong_kind(static_cast<size_t>(at - begin), chunk, field, plans[field].kind,
                                 parsed.text);
        return false;
      }
      stop = parsed.end;
    }
    at = stop;
    ++field;
  } while (dialect.next_field(at));
  if (field < count && dialect.short_rows() && !fill_row(chunk, field, plans)) {
    chunk.error = wrong_kind(row_begin, chunk, field, plans[field].kind, "");
    return false;
  }
  at = dialect.next_row(at);
  if (field == count) return true;
  chunk.error = wrong_length(row_begin, chunk, field, count);
  return false;
}

}  // namespace

CsvField csv_field_at(const char* begin, const CsvDialect& dialect, std::string& unquoted) {
  const auto plain_end = [&](const char* at) {
    while (!dialect.ends_field(*at)) ++at;
    return at;
  };
  if (*begin != '"') {
    const char* end = plain_end(begin);
    return {{begin, end}, end};
  }
  unquoted.clear();
  const char* from = begin + 1;
  for (;;) {
    const char* quote = from;
    while (*quote != '"') ++quote;
    if (quote[1] != '"') {
      const char* end = plain_end(quote + 1);
      if (unquoted.empty() && end == quote + 1) return {{from, quote}, end};
      unquoted.append(from, quote);
      unquoted.append(quote + 1, end);
      return {unquoted, end};
    }
    unquoted.append(from, quote + 1);
    from = quote + 2;
  }
}

std::vector<size_t> csv_row_ends(std::string_view text, const CsvDialect& dialect, size_t chunks) {
  constexpr std::string_view line_ends = "\r\n";
  const auto after = [&](size_t at) {
    return at + (text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n' ? 2 : 1);
  };
  std::vector<size_t> ends;
  if (text.find('"') == std::string_view::npos) {
    const size_t last = text.find_last_of(line_ends) + 1;  // 0 if there is none
    for (size_t i = 1; i < chunks; ++i) {
      const size_t end = text.substr(0, last).find_first_of(line_ends, last * i / chunks);
      if (end != std::string_view::npos) ends.push_back(after(end));
    }
    ends.push_back(last);
    return ends;
  }
  size_t last = 0;
  bool field_begins = true;
  for (size_t at = 0; at < text.size(); ++at) {
    if (field_begins && text[at] == '"') {
      for (++at;; at += 2) {
        at = text.find('"', at);
        if (at == std::string_view::npos) break;
        if (at + 1 == text.size() || text[at + 1] != '"') break;
      }
      if (at == std::string_view::npos) break;
      field_begins = false;
      continue;
    }
    if (!dialect.ends_field(text[at])) {
      field_begins = field_begins && dialect.is_skipped(text[at]);
      continue;
    }
    field_begins = true;
    if (!dialect.ends_row(text[at])) continue;
    at = text.find_first_of(line_ends, at);
    if (at == std::string_view::npos) break;
    last = after(at);
    at = last - 1;
    if (last * chunks > text.size() * (ends.size() + 1)) ends.push_back(last);
  }
  ends.push_back(last);
  return ends;
}

void add_csv_rows(CsvChunk& chunk, const CsvDialect& dialect, const std::vector<CsvPlan>& plans) {
  const char* const begin = chunk.text.data();
  const char* const end = begin + chunk.text.size();
  std::string unquoted;
  for (const char* at = begin; at < end && chunk.rows < chunk.max_rows;) {
    if (const char* next = dialect.empty_row_end(at)) {
      at = next;
      continue;
    }
    if (!add_row(at, begin, end, dialect, plans, chunk, unquoted)) return;
    ++chunk.rows;
  }
}

}  // namespace tessera::detail
