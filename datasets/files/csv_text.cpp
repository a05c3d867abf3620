#include <tessera/datasets/files/csv_text.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

constexpr size_t decoded_at_a_time = size_t{1} << 16;
constexpr const char* encoding_names[] = {"utf-8", "latin-1", "cp1252", "utf-16"};

/// The characters of cp1252 from 0x80 to 0x9F, 0 for those it lacks; the others are latin-1's.
constexpr uint16_t cp1252_characters[] = {
    0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017D, 0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

/// Returns the number of ASCII bytes at the begin of a text.
size_t ascii_length(std::string_view text) {
  size_t at = 0;
  for (uint64_t word = 0; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if (word & 0x8080808080808080) break;
  }
  while (at < text.size() && static_cast<uint8_t>(text[at]) < 0x80) ++at;
  return at;
}

/// Whether a text is the begin of a character whose other bytes may follow.
bool may_be_begun(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  const size_t length = first < 0xC2 || first > 0xF4 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  return text.size() < length && std::all_of(text.begin() + 1, text.end(), [](char c) {
           return (static_cast<uint8_t>(c) & 0xC0) == 0x80;
         });
}

size_t encoding_index(const std::string& name) {
  const std::vector<std::string> known(std::begin(encoding_names), std::end(encoding_names));
  const auto found = std::find(known.begin(), known.end(), name);
  if (found != known.end()) return static_cast<size_t>(found - known.begin());
  throw ConfigError("read_csv", "encoding is one of " + quoted_list(known), in_quotes(name),
                    suggestion(name, known));
}

}  // namespace

CsvText::CsvText(const std::string& path, const std::string& encoding)
    : path_(path),
      name_(encoding),
      encoding_(static_cast<Encoding>(encoding_index(encoding))),
      file_(path) {}

size_t CsvText::read(std::span<std::byte> out) {
  if (encoding_ == Encoding::utf8) return read_utf8(out);
  size_t done = 0;
  while (done < out.size()) {
    if (taken_ == decoded_.size()) {
      if (ended_) break;
      decode_block();
      continue;
    }
    const size_t count = std::min(decoded_.size() - taken_, out.size() - done);
    std::memcpy(out.data() + done, decoded_.data() + taken_, count);
    taken_ += count;
    done += count;
  }
  return done;
}

std::string CsvText::line_at(uint64_t offset) const {
  CsvText text(path_, name_);
  int64_t line = 1;
  char before = '\0';
  std::string bytes(size_t{1} << 20, '\0');
  while (offset > 0) {
    const size_t limit = std::min<uint64_t>(offset, bytes.size());
    const size_t got = text.read(std::as_writable_bytes(std::span(bytes.data(), limit)));
    if (got == 0) break;
    for (const char c : std::string_view(bytes).substr(0, got)) {
      line += c == '\r' || (c == '\n' && before != '\r');
      before = c;
    }
    offset -= got;
  }
  return str(", line ", line);
}

size_t CsvText::read_utf8(std::span<std::byte> out) {
  const size_t got = file_.read(out);
  check_utf8({reinterpret_cast<const char*>(out.data()), got});
  read_ += got;
  if (got < out.size() && !partial_.empty()) fail_utf8(partial_, read_ - partial_.size());
  return got;
}

/// Checks the next bytes, which follow `partial_`.
void CsvText::check_utf8(std::string_view text) {
  size_t at = 0;
  while (!partial_.empty() && at < text.size()) {
    partial_ += text[at++];
    if (utf8_length(partial_) > 0) {
      partial_.clear();
    } else if (!may_be_begun(partial_)) {
      fail_utf8(partial_, read_ + at - partial_.size());
    }
  }
  while ((at += ascii_length(text.substr(at))) < text.size()) {
    const size_t length = utf8_length(text.substr(at));
    if (length == 0 && may_be_begun(text.substr(at))) {
      partial_ = text.substr(at);
      return;
    }
    if (length == 0) {
      constexpr size_t context_bytes = 20;
      const size_t line = text.find_last_of("\r\n", at) + 1;  // 0 if there is none
      const size_t begin = std::max(line, at - std::min(at, context_bytes));
      fail_utf8(text.substr(begin, at + 1 - begin), read_ + at);
    }
    at += length;
  }
}

/// Throws the FileError for a byte that is not UTF-8, the one at `offset`.
void CsvText::fail_utf8(std::string_view context, uint64_t offset) const {
  const bool wide = offset == 0 && (context.starts_with('\xFF') || context.starts_with('\xFE'));
  throw FileError(path_ + line_at(offset), "text in UTF-8", in_quotes(context),
                  wide ? R"(pass encoding = "utf-16")"
                       : R"(pass encoding = "cp1252" or "latin-1", or save the file as UTF-8)");
}

/// Decodes the next bytes, or finds the end.
void CsvText::decode_block() {
  decoded_.clear();
  taken_ = 0;
  const size_t old = undecoded_.size();
  undecoded_.resize(old + decoded_at_a_time);
  undecoded_.resize(old + file_.read(std::as_writable_bytes(std::span(undecoded_).subspan(old))));
  ended_ = undecoded_.size() < old + decoded_at_a_time;
  if (encoding_ == Encoding::utf16) return decode_utf16();
  for (const char c : undecoded_) {
    const auto byte = static_cast<uint8_t>(c);
    const bool special = encoding_ == Encoding::cp1252 && byte >= 0x80 && byte < 0xA0;
    const uint32_t character = special ? cp1252_characters[byte - 0x80] : byte;
    if (special && character == 0) fail_decoding(in_quotes(std::string_view(&c, 1)));
    append_utf8(decoded_, character);
  }
  undecoded_.clear();
}

/// Decodes the pairs of bytes in `undecoded_`; half a character stays there.
void CsvText::decode_utf16() {
  if (!begun_ && undecoded_.size() >= 2) {
    big_endian_ = undecoded_.starts_with("\xFE\xFF");
    if (big_endian_ || undecoded_.starts_with("\xFF\xFE")) undecoded_.erase(0, 2);
    begun_ = true;
  }
  const auto unit_at = [&](size_t at) {
    const auto first = static_cast<uint8_t>(undecoded_[at]);
    const auto second = static_cast<uint8_t>(undecoded_[at + 1]);
    return static_cast<uint32_t>(big_endian_ ? first << 8 | second : second << 8 | first);
  };
  size_t at = 0;
  for (; at + 2 <= undecoded_.size(); at += 2) {
    uint32_t character = unit_at(at);
    if (character >= 0xDC00 && character < 0xE000) fail_decoding("half a surrogate pair");
    if (character >= 0xD800 && character < 0xDC00) {
      if (at + 4 > undecoded_.size()) break;
      const uint32_t low = unit_at(at + 2);
      if (low < 0xDC00 || low >= 0xE000) fail_decoding("half a surrogate pair");
      character = 0x10000 + ((character - 0xD800) << 10) + (low - 0xDC00);
      at += 2;
    }
    append_utf8(decoded_, character);
  }
  undecoded_.erase(0, at);
  if (ended_ && !undecoded_.empty()) fail_decoding("half a character at the end");
}

void CsvText::fail_decoding(const std::string& received) const {
  throw FileError(path_, "text in " + name_, received, "name the file's encoding");
}

}  // namespace tessera::detail
