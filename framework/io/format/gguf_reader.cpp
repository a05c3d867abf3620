#include <tessera/framework/io/format/gguf_reader.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/byte_reader.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/rectangle_runs.hpp>

namespace tessera::detail {
namespace {

// The format: docs/gguf.md of the repository ggml.
constexpr uint64_t max_gguf_text = uint64_t{1} << 24;
constexpr uint64_t max_gguf_name = 65535;
constexpr uint64_t default_gguf_alignment = 32;
constexpr const char* alignment_key = "general.alignment";
constexpr uint32_t max_gguf_axes = 4;
constexpr size_t floats_at_once = size_t{1} << 16;

/// The types of metadata, in the order of their numbers.
enum class GgufValue : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  text,
  array,
  u64,
  i64,
  f64
};
constexpr std::array<uint64_t, 13> value_bytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/// Reads the part of a file before the tensors' bytes.
class GgufHeader {
 public:
  GgufHeader(const InputFile& file, const std::string& path)
      : file_(file), path_(path), size_(file.stored_size()) {}

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return size_ - std::min(size_, offset_); }

  [[noreturn]] void fail(const std::string& expected, const std::string& received) const {
    const std::string subject = subject_.empty() ? "" : subject_ + ": ";
    fail_at(path_, offset_, subject + expected, received);
  }
  /// Sets what errors are about.
  void about(const std::string& subject) { subject_ = subject; }

  uint64_t number(uint64_t bytes, const char* what) {
    std::array<std::byte, 8> buffer{};
    take(std::span(buffer).first(bytes), what);
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(buffer[i]);
    return value;
  }
  uint32_t u32(const char* what) { return static_cast<uint32_t>(number(4, what)); }
  uint64_t u64(const char* what) { return number(8, what); }

  /// Returns a number of things that take at least `bytes` bytes each.
  uint64_t count(uint64_t bytes, const char* what) {
    const uint64_t value = u64(what);
    if (value > remaining() / bytes) fail(str(what, " that the file has bytes for"), str(value));
    return value;
  }

  std::string text(uint64_t max_bytes, const char* what) {
    const uint64_t length = count(1, what);
    if (length > max_bytes) fail(str(what, " of at most ", max_bytes, " bytes"), str(length));
    std::string bytes(length, '\0');
    take(std::as_writable_bytes(std::span(bytes)), what);
    return bytes;
  }

  void skip(uint64_t bytes) {
    if (bytes > remaining()) fail("the elements of an array", "the end of the file");
    offset_ += bytes;
  }

  Json value() {
    const GgufValue type = value_type();
    if (type == GgufValue::array) return skip_array();
    if (type == GgufValue::text) return text(max_gguf_text, "a text");
    const uint64_t bytes = value_bytes[static_cast<size_t>(type)];
    const uint64_t bits = number(bytes, "a value");
    switch (type) {
      case GgufValue::boolean:
        if (bits > 1) fail("a bool is 0 or 1", str(bits));
        return bits == 1;
      case GgufValue::f32:
        return std::bit_cast<float>(static_cast<uint32_t>(bits));
      case GgufValue::f64:
        return std::bit_cast<double>(bits);
      case GgufValue::i8:
        return static_cast<int8_t>(bits);
      case GgufValue::i16:
        return static_cast<int16_t>(bits);
      case GgufValue::i32:
        return static_cast<int32_t>(bits);
      case GgufValue::i64:
        return static_cast<int64_t>(bits);
      default:
        return bits;
    }
  }

  GgufTensor tensor() {
    GgufTensor tensor;
    tensor.name = text(max_gguf_name, "a tensor's name");
    about("tensor " + in_quotes(tensor.name));
    const uint32_t axes = u32("the number of axes");
    if (axes > max_gguf_axes) fail(str("at most ", max_gguf_axes, " axes"), str(axes));
    for (uint32_t i = 0; i < axes; ++i) {
      const uint64_t extent = u64("an extent");
      if (!std::in_range<int64_t>(extent)) fail("an extent is below 2^63", str(extent));
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(extent));
    }
    tensor.type = u32("a type");
    tensor.offset = u64("an offset");
    check_type(tensor);
    about("");
    return tensor;
  }

 private:
  /// Reads the next bytes, by way of a buffer that holds the file's bytes from `buffered_` on.
  void take(std::span<std::byte> out, const char* what) {
    while (!out.empty()) {
      if (offset_ < buffered_ || offset_ >= buffered_ + buffer_.size()) {
        buffer_.resize(buffer_bytes);
        buffered_ = offset_;
        buffer_.resize(file_.read_stored_at(offset_, buffer_));
        if (buffer_.empty()) fail(what, "the end of the file");
      }
      const std::span<const std::byte> ready = std::span(buffer_).subspan(offset_ - buffered_);
      const size_t count = std::min(ready.size(), out.size());
      std::copy_n(ready.begin(), count, out.begin());
      out = out.subspan(count);
      offset_ += count;
    }
  }

  GgufValue value_type() {
    const uint32_t type = u32("a type");
    if (type >= value_bytes.size()) fail("a type of values, less than 13", str(type));
    return static_cast<GgufValue>(type);
  }

  Json skip_array() {
    const GgufValue type = value_type();
    if (type == GgufValue::array) fail("an array of numbers or texts", "an array of arrays");
    const bool is_text = type == GgufValue::text;
    const uint64_t bytes = is_text ? 8 : value_bytes[static_cast<size_t>(type)];
    const uint64_t elements = count(bytes, "the elements of an array");
    if (!is_text) {
      skip(elements * bytes);
      return nullptr;
    }
    for (uint64_t i = 0; i < elements; ++i) skip(count(1, "a text"));
    return nullptr;
  }

  void check_type(const GgufTensor& tensor) const {
    const GgufType type = gguf_type(tensor.type);
    if (type.elements == 0) {
      const std::string name = type.name ? std::string(type.name) : str("number ", tensor.type);
      throw FileError(path_, subject_ + " has one of the types F32, F16, BF16, Q8_0, Q4_0 and Q4_1",
                      name, "get the model in one of these, such as its Q8_0 file");
    }
    const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (row % static_cast<int64_t>(type.elements) == 0) return;
    fail(str("rows of ", type.name, " are a multiple of ", type.elements), str(row));
  }

  static constexpr size_t buffer_bytes = size_t{1} << 16;

  const InputFile& file_;
  const std::string& path_;
  std::string subject_;
  uint64_t size_;
  uint64_t offset_ = 0;
  std::vector<std::byte> buffer_;
  uint64_t buffered_ = 0;
};

/// Returns the bytes of a tensor of an implemented type; nothing if they overflow.
std::optional<uint64_t> gguf_bytes(const GgufTensor& tensor) {
  std::optional<uint64_t> elements = 1;
  for (const int64_t extent : tensor.shape) {
    if (elements) elements = checked_mul(*elements, static_cast<uint64_t>(extent));
  }
  const GgufType type = gguf_type(tensor.type);
  return elements ? checked_mul(*elements / type.elements, type.bytes) : std::nullopt;
}

uint64_t gguf_alignment(const GgufHeader& header, const std::map<std::string, Json>& metadata) {
  const auto found = metadata.find(alignment_key);
  if (found == metadata.end()) return default_gguf_alignment;
  const bool is_valid = found->second.is_number_unsigned() &&
                        std::has_single_bit(found->second.get<uint64_t>()) &&
                        found->second.get<uint64_t>() <= uint64_t{1} << 20;
  if (!is_valid) {
    const Json& value = found->second;
    header.fail(str(alignment_key, " is a power of 2, of type uint32"),
                value.is_number() ? to_json_text(value, -1) : value.type_name());
  }
  return found->second.get<uint64_t>();
}

/// Turns offsets among the tensors' bytes into offsets in the file, and checks them.
void place_gguf_tensors(GgufHeader& header, std::vector<GgufTensor>& tensors, uint64_t alignment) {
  const auto aligned = [&](uint64_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  };
  const uint64_t size = header.offset() + header.remaining();
  uint64_t begin = aligned(header.offset());
  const uint64_t first = begin;
  for (GgufTensor& tensor : tensors) {
    header.about("tensor " + in_quotes(tensor.name));
    const std::optional<uint64_t> bytes = gguf_bytes(tensor);
    if (begin > size || !bytes || *bytes > size - begin) {
      header.fail("its bytes are inside the file", str("a file of ", size, " bytes"));
    }
    if (tensor.offset != begin - first) {
      header.fail(str("its bytes begin at ", begin - first, ", after the previous tensor's"),
                  str(tensor.offset));
    }
    tensor.offset = begin;
    begin = aligned(begin + *bytes);
  }
}

}  // namespace

GgufReader::GgufReader(const std::string& path) : path_(path), input_(path) {
  if (input_.size_bound() != input_.stored_size()) {
    throw FileError(path, "a GGUF file that is not compressed", "a gzip file", "decompress it");
  }
  GgufHeader header(input_, path);
  constexpr uint32_t magic = 0x46554747;  // "GGUF"
  const uint32_t start = header.u32("GGUF's first 4 bytes");
  if (start != magic) header.fail("the first 4 bytes are GGUF", str(start));
  const uint32_t version = header.u32("the version");
  if (version != 2 && version != 3) {
    header.fail("version 2 or 3, in little-endian order", str(version));
  }
  const uint64_t tensors = header.count(24, "the number of tensors");
  const uint64_t values = header.count(12, "the number of values");
  for (uint64_t i = 0; i < values; ++i) {
    header.about("");
    const std::string key = header.text(max_gguf_name, "a key");
    header.about("value " + in_quotes(key));
    if (!metadata_.emplace(key, header.value()).second) header.fail("one value", "two");
  }
  header.about("");
  std::set<std::string> names;
  for (uint64_t i = 0; i < tensors; ++i) {
    tensors_.push_back(header.tensor());
    if (names.insert(tensors_.back().name).second) continue;
    header.fail("one tensor " + in_quotes(tensors_.back().name), "two");
  }
  place_gguf_tensors(header, tensors_, gguf_alignment(header, metadata_));
}

void GgufReader::read(const GgufTensor& tensor, const Rectangle& area, std::span<float> out) const {
  if (out.empty()) return;
  for_each_run(full_rectangle(tensor.shape), area, 1, [&](const CommonRun& run) {
    for (uint64_t at = 0; at < run.bytes; at += floats_at_once) {
      const uint64_t count = std::min<uint64_t>(floats_at_once, run.bytes - at);
      read_range(tensor, run.source + at, out.subspan(run.target + at, count));
    }
  });
}

/// Reads elements from `first` on, counted as the tensor is stored. Its rows are entire blocks.
void GgufReader::read_range(const GgufTensor& tensor, uint64_t first, std::span<float> out) const {
  const GgufType type = gguf_type(tensor.type);
  const uint64_t begin = first / type.elements;
  const uint64_t end = (first + out.size() + type.elements - 1) / type.elements;
  std::vector<std::byte> blocks((end - begin) * type.bytes);
  const uint64_t offset = tensor.offset + begin * type.bytes;
  if (input_.read_stored_at(offset, blocks) != blocks.size()) {
    fail_at(path_, offset, "the bytes of tensor " + in_quotes(tensor.name), "the file has shrunk");
  }
  std::vector<float> floats((end - begin) * type.elements);
  gguf_to_floats(tensor.type, blocks, floats);
  const float* source = floats.data() + (first - begin * type.elements);
  std::copy(source, source + out.size(), out.begin());
}

}  // namespace tessera::detail
