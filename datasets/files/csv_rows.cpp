#include <tessera/datasets/files/csv_rows.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

bool add_row(const char*& at, const char* begin, const char* end, char delimiter,
             const std::vector<CsvPlan>& plans, CsvChunk& chunk, std::string& unquoted) {
  const char* const row_begin = at;
  const size_t count = plans.size();
  size_t field = 0;
  for (;; ++field, ++at) {
    const bool selected = field < count && plans[field].selected;
    const char* stop = selected ? chunk.builders[field].add_number(at, end, delimiter) : nullptr;
    if (!stop) {
      const CsvField parsed = csv_field_at(at, delimiter, unquoted);
      if (selected && !chunk.builders[field].add(parsed.text)) {
        chunk.error = {static_cast<size_t>(at - begin),
                       chunk.rows,
                       field,
                       "a value of kind " + csv_kind_name(plans[field].kind),
                       in_quotes(parsed.text),
                       "correct it, or let the column be text"};
        return false;
      }
      stop = parsed.end;
    }
    at = stop;
    if (*at == '\r') ++at;
    if (*at == '\n') break;
  }
  ++at;
  if (field + 1 == count) return true;
  chunk.error = {static_cast<size_t>(row_begin - begin),
                 chunk.rows,
                 count,
                 str(count, count == 1 ? " field" : " fields", " as in the first row"),
                 std::to_string(field + 1),
                 "correct the row, or name another delimiter"};
  return false;
}

}  // namespace

CsvField csv_field_at(const char* begin, char delimiter, std::string& unquoted) {
  const auto plain_end = [delimiter](const char* at) {
    while (*at != delimiter && *at != '\n') ++at;
    return at;
  };
  const auto without_return = [](const char* from, const char* to) {
    return std::string_view(from, to - (*to == '\n' && to > from && to[-1] == '\r'));
  };
  if (*begin != '"') {
    const char* end = plain_end(begin);
    return {without_return(begin, end), end};
  }
  unquoted.clear();
  const char* from = begin + 1;
  for (;;) {
    const char* quote = from;
    while (*quote != '"') ++quote;
    if (quote[1] != '"') {
      const char* end = plain_end(quote + 1);
      const std::string_view after_quote = without_return(quote + 1, end);
      if (unquoted.empty() && after_quote.empty()) return {{from, quote}, end};
      unquoted.append(from, quote);
      unquoted += after_quote;
      return {unquoted, end};
    }
    unquoted.append(from, quote + 1);
    from = quote + 2;
  }
}

std::vector<size_t> csv_row_ends(std::string_view text, char delimiter, size_t chunks) {
  std::vector<size_t> ends;
  if (text.find('"') == std::string_view::npos) {
    const size_t last = text.rfind('\n') + 1;  // 0 if there is none
    for (size_t i = 1; i < chunks; ++i) {
      const size_t end = text.substr(0, last).find('\n', last * i / chunks);
      if (end != std::string_view::npos) ends.push_back(end + 1);
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
    field_begins = text[at] == delimiter || text[at] == '\n';
    if (text[at] != '\n') continue;
    last = at + 1;
    if (last * chunks > text.size() * (ends.size() + 1)) ends.push_back(last);
  }
  ends.push_back(last);
  return ends;
}

void add_csv_rows(CsvChunk& chunk, char delimiter, const std::vector<CsvPlan>& plans) {
  const char* const begin = chunk.text.data();
  const char* const end = begin + chunk.text.size();
  std::string unquoted;
  for (const char* at = begin; at < end && chunk.rows < chunk.max_rows;) {
    if (*at == '\n' || (*at == '\r' && at[1] == '\n')) {
      at += *at == '\n' ? 1 : 2;
      continue;
    }
    if (!add_row(at, begin, end, delimiter, plans, chunk, unquoted)) return;
    ++chunk.rows;
  }
}

}  // namespace tessera::detail
