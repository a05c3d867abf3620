#include <tessera/datasets/files/npy.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/byte_reader.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr size_t begin_bytes = 8;  // magic string and two version bytes
constexpr uint32_t max_header_bytes = 65536;
constexpr const char* known_kinds =
    "numbers of the kinds b1, i1 to i8, u1 to u8, f2 to f8, c8 and c16";

/// A kind of numbers, by NumPy's letter and size.
struct NpyType {
  std::string_view kind;
  const char* dtype;
  uint64_t bytes;
};
constexpr NpyType npy_types[] = {
    {"f4", "F32", 4}, {"f8", "F64", 8},  {"f2", "F16", 2}, {"i8", "I64", 8},   {"i4", "I32", 4},
    {"i2", "I16", 2}, {"i1", "I8", 1},   {"u8", "U64", 8}, {"u4", "U32", 4},   {"u2", "U16", 2},
    {"u1", "U8", 1},  {"b1", "BOOL", 1}, {"c8", "C64", 8}, {"c16", "C128", 16}};

/// Elements of an array in a file.
struct NpyElements {
  uint64_t bytes = 0;    ///< bytes of one element
  uint64_t swapped = 1;  ///< bytes whose order is reversed: a number's, or half a complex one's
  char text = '\0';      ///< 'S': texts of bytes, 'U': of 32-bit characters
};

/// A source of bytes: a file or memory.
struct NpySource {
  std::string path;
  std::function<size_t(std::span<std::byte>)> read;  ///< returns fewer bytes only at the end
  uint64_t size_bound;
};

std::string read_bytes(const NpySource& file, size_t bytes) {
  std::string text(bytes, '\0');
  text.resize(file.read(std::as_writable_bytes(std::span(text))));
  return text;
}

/// Parses the header: a dictionary in Python's syntax with the keys descr, fortran_order and shape.
class NpyHeader {
 public:
  NpyHeader(const std::string& text, const std::string& path) : text_(text), path_(path) {}

  void parse(NpyArray& array, std::string& descr) {
    std::set<std::string> missing{"descr", "fortran_order", "shape"};
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      if (missing.erase(key) == 0) fail();
      expect(':');
      if (key == "descr") descr = dtype();
      if (key == "fortran_order") array.fortran_order = truth();
      if (key == "shape") read_shape(array.shape);
      if (!take(',') && peek() != '}') fail();
    }
    if (!missing.empty() || peek() != '\0') fail();
  }

 private:
  [[noreturn]] void fail(
      const std::string& expected = "the header of an array as numpy.save writes it") const {
    fail_at(path_, begin_bytes, expected, in_quotes(text_, 200));
  }
  /// Returns the next character after blanks; '\0' at the end.
  char peek() {
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail();
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail();
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) fail();
    const size_t begin = std::exchange(at_, end + 1) + 1;
    return text_.substr(begin, end - begin);
  }
  std::string dtype() {
    if (peek() != '[') return quoted();
    throw FileError(path_, known_kinds, "a structured array", "save each of its fields");
  }
  bool truth() {
    peek();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.compare(at_, word.size(), word) != 0) continue;
      at_ += word.size();
      return value;
    }
    fail();
  }
  void read_shape(Shape& shape) {
    expect('(');
    while (!take(')')) {
      const char first = peek();
      int64_t extent = 0;
      const auto [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc() || first == '-') fail("a shape of numbers");
      if (extent > int64_t{1} << 48) fail("extents of at most 2^48");
      shape.push_back(extent);
      at_ = static_cast<size_t>(end - text_.data());
      take('L');  // Python 2's long integer
      if (!take(',') && peek() != ')') fail("a shape of numbers");
    }
  }

  const std::string& text_;
  const std::string& path_;
  size_t at_ = 0;
};

/// Returns the elements that NumPy calls `descr`, such as "<f4" or "|S5".
NpyElements elements_of(const std::string& descr, NpyArray& array, const std::string& path) {
  NpyElements elements;
  const bool is_ordered =
      !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  const std::string_view kind = std::string_view(descr).substr(is_ordered ? 1 : 0);
  for (const NpyType& type : npy_types) {
    if (kind != type.kind) continue;
    array.dtype = type.dtype;
    elements.bytes = type.bytes;
  }
  uint64_t characters = 0;
  if (kind.starts_with('S') || kind.starts_with('U')) {
    const char* end = kind.data() + kind.size();
    const auto [stop, error] = std::from_chars(kind.data() + 1, end, characters);
    if (error != std::errc() || stop != end || characters > uint64_t{1} << 32) characters = 0;
  }
  if (characters > 0) {
    elements.text = kind[0];
    elements.bytes = characters * (kind[0] == 'U' ? 4 : 1);
  }
  if (elements.bytes == 0) {
    throw FileError(path, str(known_kinds, ", or texts"), in_quotes(descr),
                    "save x.astype() of one of them");
  }
  if (descr[0] == '>') {
    elements.swapped = elements.text == 'S'   ? 1
                       : elements.text == 'U' ? 4
                       : kind[0] == 'c'       ? elements.bytes / 2
                                              : elements.bytes;
  }
  return elements;
}

void reverse_bytes(std::span<std::byte> data, uint64_t swapped) {
  for (size_t at = 0; swapped > 1 && at < data.size(); at += swapped) {
    const std::span<std::byte> number = data.subspan(at, swapped);
    std::reverse(number.begin(), number.end());
  }
}

/// Returns the text of an element of 32-bit characters, which zeros fill up.
std::string text_of_characters(std::span<const std::byte> element, const std::string& where) {
  std::string text;
  size_t used = 0;
  for (size_t at = 0; at < element.size(); at += 4) {
    uint32_t character = 0;
    for (size_t i = 4; i-- > 0;)
      character = character << 8 | std::to_integer<uint32_t>(element[at + i]);
    if (character > 0x10FFFF || (character >= 0xD800 && character < 0xE000)) {
      throw FileError(where, "characters of Unicode", str("number ", character),
                      "write the file again");
    }
    append_utf8(text, character);
    if (character != 0) used = text.size();
  }
  text.resize(used);
  return text;
}

/// Moves the data of an array of texts to its texts.
void make_texts(NpyArray& array, const NpyElements& elements, const std::string& path) {
  const std::span<const std::byte> data(array.data);
  array.texts.emplace();
  for (size_t at = 0; at < data.size(); at += elements.bytes) {
    const std::span<const std::byte> element = data.subspan(at, elements.bytes);
    if (elements.text == 'U') {
      array.texts->push_back(text_of_characters(element, path));
      continue;
    }
    const std::string_view bytes(reinterpret_cast<const char*>(element.data()), element.size());
    array.texts->emplace_back(bytes.substr(0, bytes.find_last_not_of('\0') + 1));
  }
  array.data = {};
}

NpyArray read_array(const NpySource& file, uint64_t max_bytes) {
  const std::string& path = file.path;
  const std::string begin = read_bytes(file, begin_bytes);
  const bool is_npy = begin.size() == begin_bytes && begin.starts_with(npy_magic);
  const auto version = is_npy ? static_cast<uint8_t>(begin[6]) : 0;
  if (version < 1 || version > 3) {
    fail_at(path, 0, "an array that numpy.save wrote begins with \\x93NUMPY", "other bytes");
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  const std::string length = read_bytes(file, length_bytes);
  uint32_t header = 0;
  for (size_t i = length.size(); i-- > 0;) header = header << 8 | static_cast<uint8_t>(length[i]);
  if (length.size() < length_bytes || header > max_header_bytes) {
    fail_at(path, begin_bytes, str("a header of at most ", max_header_bytes, " bytes"),
            str(header));
  }
  NpyArray array;
  std::string descr;
  const std::string text = read_bytes(file, header);
  NpyHeader(text, path).parse(array, descr);
  const NpyElements elements = elements_of(descr, array, path);
  std::optional<uint64_t> bytes = elements.bytes;
  for (const int64_t extent : array.shape) {
    if (bytes) bytes = checked_mul(*bytes, static_cast<uint64_t>(extent));
  }
  const uint64_t offset = begin_bytes + length_bytes + header;
  if (!bytes || *bytes > max_bytes || *bytes > file.size_bound) {
    fail_at(path, offset, "the numbers of shape " + to_string(array.shape), "a shorter file");
  }
  array.data.resize(*bytes);
  const size_t got = file.read(array.data);
  std::byte extra{};
  if (got < *bytes || file.read(std::span(&extra, 1)) > 0) {
    fail_at(path, offset + got, str("the ", *bytes, " bytes of shape ", to_string(array.shape)),
            got < *bytes ? "the file ends here" : "more bytes");
  }
  reverse_bytes(array.data, elements.swapped);
  if (elements.text != '\0') make_texts(array, elements, path);
  return array;
}

}  // namespace

NpyArray read_npy(const std::string& path, uint64_t max_bytes) {
  InputFile file(path);
  return read_array(
      {path, [&](std::span<std::byte> out) { return file.read(out); }, file.size_bound()},
      max_bytes);
}

NpyArray parse_npy(std::string_view bytes, const std::string& name) {
  const auto take = [rest = bytes](std::span<std::byte> out) mutable {
    const size_t count = std::min(out.size(), rest.size());
    if (count > 0) std::memcpy(out.data(), rest.data(), count);
    rest.remove_prefix(count);
    return count;
  };
  return read_array({name, take, bytes.size()}, bytes.size());
}

std::string npy_header(const std::string& dtype, const Shape& shape, const std::string& where) {
  const NpyType* type = nullptr;
  for (const NpyType& known : npy_types) {
    if (dtype == known.dtype) type = &known;
  }
  if (!type) throw ConfigError(where, "a dtype that NumPy has", dtype, "cast it to float32");
  std::string extents;
  for (const int64_t extent : shape) extents += str(extents.empty() ? "" : ", ", extent);
  if (shape.size() == 1) extents += ",";
  std::string text = str("{'descr': '", type->bytes == 1 ? '|' : '<', type->kind,
                         "', 'fortran_order': False, 'shape': (", extents, "), }");
  // Aligns the data to 64 bytes.
  text.append(63 - (begin_bytes + 2 + text.size()) % 64, ' ');
  text += '\n';
  std::string head(npy_magic);
  head += {'\1', '\0', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return head + text;
}

void write_npy(const std::string& path, const std::string& dtype, const Shape& shape,
               std::span<const std::byte> data) {
  const std::string head = npy_header(dtype, shape, path);
  const std::array<std::span<const std::byte>, 2> parts{std::as_bytes(std::span(head)), data};
  write_file_atomically(path, parts);
}

}  // namespace tessera::detail
