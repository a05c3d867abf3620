#include <tessera/datasets/files/csv_column.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <iterator>
#include <limits>

namespace tessera::detail {
namespace {

constexpr int64_t missing_bool = 2;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\v\f";
  const size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Returns the number as C writes it; a text that is no number stays no number.
std::string in_c(std::string_view text, const CsvValueFormat& format) {
  std::string number;
  bool in_fraction = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool between = i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) &&
                         is_digit(text[i + 1]) && !in_fraction;
    if (format.thousands && c == *format.thousands && between) continue;
    in_fraction = in_fraction || c == format.decimal;
    // A point that is not the decimal sign.
    number += c == format.decimal ? '.' : c == '.' ? '?' : c;
  }
  return number;
}

/// Whether a number that parse_float() accepts is written as an integer.
bool is_integer_text(std::string_view number) {
  return number.find_first_of(".eEiI") == std::string_view::npos;
}

/// Whether a double is this integer.
bool is_exact(int64_t value) {
  const auto real = static_cast<double>(value);
  return real < 0x1p63 && static_cast<int64_t>(real) == value;
}

bool parse_int(std::string_view text, int64_t& value) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

/// Parses a decimal number or an infinity; returns false for other texts.
bool parse_float(std::string_view text, double& value) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const char first = text.size() > 1 && text[0] == '-' ? text[1] : text.empty() ? ' ' : text[0];
  if (!is_digit(first) && first != '.' && first != 'i' && first != 'I') return false;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return false;
  if (error == std::errc()) return true;
  // Out of double's range: becomes infinite or zero.
  long double wide = 0;
  if (std::from_chars(text.data(), end, wide).ec != std::errc()) return false;
  value = static_cast<double>(wide);
  return true;
}

bool parse_bool(std::string_view text, int64_t& value) {
  const bool yes = text == "true" || text == "True" || text == "TRUE";
  const bool no = text == "false" || text == "False" || text == "FALSE";
  value = yes;
  return yes || no;
}

/// Appends digits to `number`, eight at a time, and adds how many to `count`. The number overflows
/// beyond nineteen digits.
const char* read_digits(const char* at, const char* end, uint64_t& number, int& count) {
  constexpr uint64_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
  constexpr uint64_t pairs = 0x000000FF000000FF;
  if constexpr (std::endian::native == std::endian::little) {
    while (end - at >= 8) {
      uint64_t word = 0;
      std::memcpy(&word, at, sizeof word);
      word ^= 0x3030303030303030;
      // Sets the high bit of the first byte that is no digit, and maybe of bytes after it.
      const uint64_t others = ((word + 0x7676767676767676) | word) & 0x8080808080808080;
      const int digits = std::countr_zero(others) / 8;
      if (digits == 0) return at;
      // The first digit is the lowest byte: shift zeros in before it.
      word <<= 64 - 8 * digits;
      word = word * 10 + (word >> 8);  // pairs, in every other byte
      word = ((word & pairs) * (100 + (uint64_t{1000000} << 32)) +
              ((word >> 16) & pairs) * (1 + (uint64_t{10000} << 32))) >>
             32;
      number = number * powers[digits] + word;
      count += digits;
      at += digits;
      if (digits < 8) return at;
    }
  }
  for (; at < end && *at >= '0' && *at <= '9'; ++at, ++count) {
    number = number * 10 + static_cast<uint64_t>(*at - '0');
  }
  return at;
}

/// Parses a decimal number of few digits without exponent, the common case, faster than from_chars;
/// returns null for others. Clears `integer` if there is a point. The digits and the power of ten
/// are exact doubles, so that their quotient is rounded only once and thus correctly (W. D.
/// Clinger, "How to read floating point numbers accurately", 1990).
const char* read_short_decimal(const char* begin, const char* end, double& value, bool& integer) {
  constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                               1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                               1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const bool negative = *begin == '-';
  uint64_t digits = 0;
  int count = 0;
  const char* at = read_digits(begin + negative, end, digits, count);
  const int integer_digits = count;
  const bool has_point = at < end && *at == '.';
  if (has_point) at = read_digits(at + 1, end, digits, count);
  const bool has_exponent = at < end && (*at == 'e' || *at == 'E');
  if (count == 0 || count > 19 || digits > uint64_t{1} << 53 || has_exponent) return nullptr;
  value = static_cast<double>(digits) / powers[count - integer_digits];
  if (negative) value = -value;
  integer = integer && !has_point;
  return at;
}

int64_t bits(double value) { return std::bit_cast<int64_t>(value); }
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

}  // namespace

std::string csv_kind_name(CsvKind kind) {
  switch (kind) {
    case CsvKind::boolean:
      return "bool";
    case CsvKind::int64:
      return "int64";
    case CsvKind::text:
      return "text";
    default:
      return "float64";
  }
}

CsvKind joined_kind(CsvKind a, CsvKind b) {
  if (a == CsvKind::none || b == CsvKind::none) return std::max(a, b);
  if (a == b) return a;
  return a == CsvKind::boolean || b == CsvKind::boolean ? CsvKind::text : std::max(a, b);
}

bool CsvColumnChunk::has_inexact() const {
  if (kind != CsvKind::int64) return inexact;
  return !std::all_of(numbers.begin(), numbers.end(), is_exact);
}

void CsvColumn::take(int64_t* out) {
  for (CsvColumnChunk& chunk : chunks) {
    out = std::copy(chunk.numbers.begin(), chunk.numbers.end(), out);
    chunk = {};
  }
}

void CsvColumn::take(double* out) {
  for (CsvColumnChunk& chunk : chunks) {
    const auto as_double = [&](int64_t value) {
      if (chunk.kind == CsvKind::float64) return std::bit_cast<double>(value);
      const bool missing = chunk.kind == CsvKind::boolean && value == missing_bool;
      return missing ? nan_value : static_cast<double>(value);
    };
    if (chunk.kind == CsvKind::none) {
      out = std::fill_n(out, chunk.rows, nan_value);
    } else {
      out = std::transform(chunk.numbers.begin(), chunk.numbers.end(), out, as_double);
    }
    chunk = {};
  }
}

std::vector<std::string> CsvColumn::take_texts() {
  std::vector<std::string> texts;
  for (CsvColumnChunk& chunk : chunks) {
    chunk.texts.resize(static_cast<size_t>(chunk.rows));
    texts.insert(texts.end(), std::move_iterator(chunk.texts.begin()),
                 std::move_iterator(chunk.texts.end()));
    chunk = {};
  }
  return texts;
}

CsvColumnBuilder::CsvColumnBuilder(const CsvPlan& plan, const CsvValueFormat& format)
    : plan_(plan), format_(format), plain_(format.decimal == '.' && !format.thousands) {
  chunk.kind = plan.kind;
}

const char* CsvColumnBuilder::add_number(const char* begin, const char* end,
                                         const CsvDialect& dialect) {
  const char first = *begin == '-' ? begin[1] : *begin;
  if (!plain_ || (!is_digit(first) && first != '.')) return nullptr;
  std::from_chars_result read{};
  if (chunk.kind == CsvKind::float64) {
    double real = 0;
    bool has_no_point = true;
    read.ptr = read_short_decimal(begin, end, real, has_no_point);
    const bool is_short = read.ptr != nullptr;
    if (!is_short) read = std::from_chars(begin, end, real);
    if (!dialect.ends_field(*read.ptr) || read.ec != std::errc()) return nullptr;
    if (!is_short) note_integer({begin, read.ptr});
    chunk.integers_only = chunk.integers_only && has_no_point;
    add_bits(bits(real));
    return read.ptr;
  }
  if (chunk.kind != CsvKind::int64) return nullptr;
  int64_t integer = 0;
  read = std::from_chars(begin, end, integer);
  if (!dialect.ends_field(*read.ptr) || read.ec != std::errc()) return nullptr;
  add_bits(integer);
  return read.ptr;
}

/// Notes whether a number that becomes a double is written as an integer, and which.
void CsvColumnBuilder::note_integer(std::string_view text) {
  if (!is_integer_text(text)) {
    chunk.integers_only = false;
    return;
  }
  int64_t value = 0;
  const bool fits = parse_int(text, value);
  chunk.beyond_int64 = chunk.beyond_int64 || !fits;
  chunk.inexact = chunk.inexact || !fits || !is_exact(value);
}

bool CsvColumnBuilder::add(std::string_view text) {
  if (chunk.kind == CsvKind::text) {
    const bool is_missing = format_.missing.contains(text);
    chunk.has_missing = chunk.has_missing || is_missing;
    chunk.texts.emplace_back(is_missing ? std::string_view() : text);
    ++chunk.rows;
    return true;
  }
  if (format_.missing.contains(text)) return add_missing();
  const std::string converted = plain_ ? "" : in_c(trimmed(text), format_);
  const std::string_view number = plain_ ? trimmed(text) : std::string_view(converted);
  int64_t integer = 0;
  double real = 0;
  CsvKind kind = CsvKind::text;
  if (parse_int(number, integer)) {
    kind = CsvKind::int64;
    real = static_cast<double>(integer);
  } else if (parse_float(number, real)) {
    kind = CsvKind::float64;
  } else if (parse_bool(number, integer)) {
    kind = CsvKind::boolean;
  }
  const CsvKind joined = joined_kind(chunk.kind, kind);
  if (joined != chunk.kind) {
    if (plan_.kind_required) return false;
    widen(joined);
  }
  if (chunk.kind == CsvKind::text) return add(text);
  if (chunk.kind == CsvKind::float64) note_integer(number);
  add_bits(chunk.kind == CsvKind::float64 ? bits(real) : integer);
  return true;
}

void CsvColumnBuilder::add_bits(int64_t value) {
  chunk.numbers.push_back(value);
  ++chunk.rows;
}

bool CsvColumnBuilder::add_missing() {
  if (plan_.kind_required && chunk.kind != CsvKind::float64) return false;
  chunk.has_missing = true;
  if (chunk.kind == CsvKind::int64) widen(CsvKind::float64);
  if (chunk.kind == CsvKind::none) {
    ++chunk.rows;
  } else {
    add_bits(chunk.kind == CsvKind::float64 ? bits(nan_value) : missing_bool);
  }
  return true;
}

/// Converts the values so far to a wider kind. A column that becomes text loses them.
void CsvColumnBuilder::widen(CsvKind kind) {
  const auto rows = static_cast<size_t>(chunk.rows);
  if (chunk.kind == CsvKind::none && kind != CsvKind::text) {
    if (kind == CsvKind::int64 && chunk.has_missing) kind = CsvKind::float64;
    chunk.numbers.assign(rows, kind == CsvKind::float64 ? bits(nan_value) : missing_bool);
  } else if (kind == CsvKind::float64) {
    for (int64_t& value : chunk.numbers) {
      chunk.inexact = chunk.inexact || !is_exact(value);
      value = bits(static_cast<double>(value));
    }
  } else {
    chunk.values_dropped = chunk.kind != CsvKind::none && rows > 0;
    chunk.numbers = {};
    chunk.texts.assign(rows, "");
  }
  chunk.kind = kind;
}

}  // namespace tessera::detail
