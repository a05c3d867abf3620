#include <tessera/datasets/files/csv_dialect.hpp>

namespace tessera::detail {

CsvDialect::CsvDialect(const CsvDialectOptions& options)
    : options_(options),
      runs_of_blanks_(options.delimiter == ' '),
      skips_blanks_(runs_of_blanks_ || options.skip_initial_space) {
  for (const char c : {'\n', '\r', options.delimiter, options.comment.value_or('\n'),
                       runs_of_blanks_ ? '\t' : '\n'}) {
    ends_field_[static_cast<uint8_t>(c)] = true;
  }
}

const char* CsvDialect::first_field(const char* at) const {
  while (is_skipped(*at)) ++at;
  return at;
}

bool CsvDialect::next_field(const char*& at) const {
  if (!runs_of_blanks_) {
    if (ends_row(*at)) return false;
    at = first_field(at + 1);
    return true;
  }
  at = first_field(at);
  return !ends_row(*at);
}

const char* CsvDialect::next_row(const char* at) const {
  while (*at != '\n' && *at != '\r') ++at;
  return at + (*at == '\r' && at[1] == '\n' ? 2 : 1);
}

const char* CsvDialect::empty_row_end(const char* at) const {
  while (*at == ' ' || (*at == '\t' && options_.delimiter != '\t')) ++at;
  return ends_row(*at) ? next_row(at) : nullptr;
}

}  // namespace tessera::detail
