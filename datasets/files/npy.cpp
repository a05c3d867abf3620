#include <tessera/datasets/files/npy.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include <re2/re2.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/byte_reader.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr size_t begin_bytes = 8;  // magic string and two version bytes
constexpr uint32_t max_header_bytes = 65536;

struct NpyType {
  const char* descr;
  const char* dtype;
  uint64_t bytes;
};
constexpr NpyType npy_types[] = {{"<f4", "F32", 4}, {"<f8", "F64", 8}, {"<f2", "F16", 2},
                                 {"<i8", "I64", 8}, {"<i4", "I32", 4}, {"|u1", "U8", 1},
                                 {"|b1", "BOOL", 1}};

std::string known_types() {
  std::string text;
  for (const NpyType& type : npy_types) text += str(text.empty() ? "" : ", ", type.descr);
  return text;
}

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

/// Parses the header's dictionary, as numpy writes it.
void read_dictionary(const std::string& text, const std::string& path, NpyArray& array,
                     uint64_t& element) {
  const auto fail = [&](const std::string& expected) {
    fail_at(path, begin_bytes, expected, in_quotes(one_line(text, 200)));
  };
  std::string descr, fortran, shape;
  static const RE2 pattern(R"(\{'descr': '([^']*)', 'fortran_order': (True|False), )"
                           R"('shape': \(([0-9, ]*)\), \} *\n)");
  if (!RE2::FullMatch(text, pattern, &descr, &fortran, &shape)) {
    fail("the header of an array of numbers as numpy.save writes it");
  }
  if (fortran == "True") fail("an array in C order: save x.copy(order=\"C\")");
  for (const NpyType& type : npy_types) {
    if (descr != type.descr) continue;
    array.dtype = type.dtype;
    element = type.bytes;
  }
  if (array.dtype.empty()) fail("numbers of the kinds " + known_types() + ": use x.astype()");
  re2::StringPiece rest(shape);
  uint64_t extent = 0;
  static const RE2 number(R"( *([0-9]+),? *)");
  while (RE2::Consume(&rest, number, &extent)) {
    if (extent > uint64_t{1} << 48) fail("extents of at most 2^48");
    array.shape.push_back(static_cast<int64_t>(extent));
  }
  if (!rest.empty()) fail("a shape of numbers");
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
  uint64_t element = 0;
  read_dictionary(read_bytes(file, header), path, array, element);
  std::optional<uint64_t> bytes = element;
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
    std::memcpy(out.data(), rest.data(), count);
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
  std::string text =
      str("{'descr': '", type->descr, "', 'fortran_order': False, 'shape': (", extents, "), }");
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
