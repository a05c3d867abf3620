#include <tessera/datasets/files/csv_rows.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

bool add_row(const char*& at, const char* begin, const char* end, char delimiter,
             const std::vector<CsvPlan>& plans, CsvShare& share, std::string& unquoted) {
  const char* const row_begin = at;
  const size_t count = plans.size();
  size_t field = 0;
  for (;; ++field, ++at) {
    const bool kept = field < count && plans[field].kept;
    const char* stop = kept ? share.builders[field].add_number(at, end, delimiter) : nullptr;
    if (!stop) {
      const CsvField found = csv_field_at(at, delimiter, unquoted);
      if (kept && !share.builders[field].add(found.text)) {
        share.fault = {static_cast<size_t>(at - begin),
                       share.rows,
                       field,
                       "a value of kind " + csv_kind_name(plans[field].kind),
                       in_quotes(found.text),
                       "correct it, or let the column be text"};
        return false;
      }
      stop = found.end;
    }
    at = stop;
    if (*at == '\r') ++at;
    if (*at == '\n') break;
  }
  ++at;
  if (field + 1 == count) return true;
  share.fault = {static_cast<size_t>(row_begin - begin),
                 share.rows,
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
      const std::string_view behind = without_return(quote + 1, end);
      if (unquoted.empty() && behind.empty()) return {{from, quote}, end};
      unquoted.append(from, quote);
      unquoted += behind;
      return {unquoted, end};
    }
    unquoted.append(from, quote + 1);
    from = quote + 2;
  }
}

std::vector<size_t> csv_row_ends(std::string_view text, char delimiter, size_t parts) {
  std::vector<size_t> ends;
  if (text.find('"') == std::string_view::npos) {
    const size_t last = text.rfind('\n') + 1;  // 0 if there is none
    for (size_t i = 1; i < parts; ++i) {
      const size_t end = text.substr(0, last).find('\n', last * i / parts);
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
    if (last * parts > text.size() * (ends.size() + 1)) ends.push_back(last);
  }
  ends.push_back(last);
  return ends;
}

void add_csv_rows(CsvShare& share, char delimiter, const std::vector<CsvPlan>& plans) {
  const char* const begin = share.text.data();
  const char* const end = begin + share.text.size();
  std::string unquoted;
  for (const char* at = begin; at < end && share.rows < share.max_rows;) {
    if (*at == '\n' || (*at == '\r' && at[1] == '\n')) {
      at += *at == '\n' ? 1 : 2;
      continue;
    }
    if (!add_row(at, begin, end, delimiter, plans, share, unquoted)) return;
    ++share.rows;
  }
}

}  // namespace tessera::detail
