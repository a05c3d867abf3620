#include <tessera/framework/base/safetensors.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <tessera/framework/base/byte_reader.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/file.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/base/text.hpp>

namespace tessera {
namespace {

constexpr uint64_t length_bytes = 8;
constexpr uint64_t max_header_bytes = 100'000'000;
constexpr const char* metadata_key = "__metadata__";

struct Dtype {
  std::string_view name;
  uint64_t bits;
};

// In the order of the reference implementation, whose writer puts the later ones first.
constexpr std::array<Dtype, 22> dtypes{{
    {"BOOL", 8},     {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},       {"F8_E5M2", 8},     {"F8_E4M3", 8},     {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},     {"U16", 16},        {"F16", 16},    {"BF16", 16},
    {"I32", 32},     {"U32", 32},        {"F32", 32},        {"C64", 64},    {"F64", 64},
    {"I64", 64},     {"U64", 64},
}};

/// Position in `dtypes`; its size for an unknown name.
size_t dtype_rank(std::string_view name) {
  const auto found = std::find_if(dtypes.begin(), dtypes.end(),
                                  [&](const Dtype& dtype) { return dtype.name == name; });
  return static_cast<size_t>(found - dtypes.begin());
}

/// Bytes of a tensor; nothing where they overflow or end inside a byte.
std::optional<uint64_t> byte_size(const Shape& shape, uint64_t bits_per_element) {
  std::optional<uint64_t> bits = 1;
  for (int64_t extent : shape) {
    if (bits) bits = checked_mul(*bits, static_cast<uint64_t>(extent));
  }
  if (bits) bits = checked_mul(*bits, bits_per_element);
  if (!bits || *bits % 8 != 0) return std::nullopt;
  return *bits / 8;
}

/// Turns a header's JSON value into entries; knows the file and the tensor for errors.
class HeaderReader {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}

  [[noreturn]] void fail(const std::string& expected, const std::string& received) const {
    const std::string subject = tensor_.empty() ? "" : "tensor " + in_quotes(tensor_) + ": ";
    fail_at(path_, length_bytes, subject + expected, received);
  }

  SafetensorsEntry entry(const std::string& name, const Json& json) {
    tensor_ = name;
    SafetensorsEntry entry{name, dtype(field(json, "dtype")), shape(field(json, "shape"))};
    const Json& offsets = field(json, "data_offsets");
    if (!offsets.is_array() || offsets.size() != 2) fail("data_offsets are a pair", show(offsets));
    entry.begin = natural(offsets[0], "an offset");
    entry.end = natural(offsets[1], "an offset");
    return entry;
  }

  std::map<std::string, std::string> metadata(const Json& json) {
    tensor_ = metadata_key;
    std::map<std::string, std::string> texts;
    if (json.is_null()) return texts;
    if (!json.is_object()) fail("an object of texts is expected", show(json));
    for (const auto& item : json.items()) {
      if (!item.value().is_string()) fail("an object of texts is expected", show(item.value()));
      texts.emplace(item.key(), item.value().get<std::string>());
    }
    return texts;
  }

  void check_bytes(const SafetensorsEntry& entry, uint64_t begin) {
    tensor_ = entry.name;
    if (entry.begin != begin || entry.end < begin) {
      fail(str("its bytes must begin at ", begin, ", where those before end"),
           str("[", entry.begin, ", ", entry.end, ")"));
    }
    const auto size = byte_size(entry.shape, *safetensors_bits(entry.dtype));
    if (!size || *size != entry.end - entry.begin) {
      const std::string needed = size ? str(*size, " bytes") : "no whole 64-bit number of bytes";
      fail(str(entry.dtype, " of shape ", to_string(entry.shape), " has ", needed),
           str(entry.end - entry.begin, " bytes"));
    }
  }

 private:
  static std::string show(const Json& json) { return one_line(to_json_text(json, -1)); }

  const Json& field(const Json& json, const char* key) const {
    const auto found = json.find(key);
    if (found == json.end()) {
      fail(str("an object with dtype, shape and data_offsets is expected"), show(json));
    }
    return *found;
  }

  uint64_t natural(const Json& json, const char* what) const {
    if (!json.is_number_unsigned()) fail(str(what, " is a natural number"), show(json));
    return json.get<uint64_t>();
  }

  std::string dtype(const Json& json) const {
    const bool known = json.is_string() && safetensors_bits(json.get_ref<const std::string&>());
    if (!known) fail("a dtype of the safetensors format is expected", show(json));
    return json.get<std::string>();
  }

  Shape shape(const Json& json) const {
    if (!json.is_array()) fail("the shape is a list", show(json));
    Shape extents;
    for (const Json& extent : json) {
      const uint64_t value = natural(extent, "an extent");
      if (!std::in_range<int64_t>(value)) fail("an extent is below 2^63", show(extent));
      extents.push_back(static_cast<int64_t>(value));
    }
    return extents;
  }

  const std::string& path_;
  std::string tensor_;
};

Json header_json(std::string_view text, const std::string& path) {
  const HeaderReader reader(path);
  Json json;
  try {
    // The format has no byte order mark, which the JSON parser would skip.
    if (text.starts_with('\xef')) reader.fail("the header is a JSON object", "a byte order mark");
    json = parse_json(text, "header");
  } catch (const ConfigError& error) {
    reader.fail("the header is a JSON object", error.what());
  }
  if (!json.is_object()) reader.fail("the header is a JSON object", one_line(text));
  return json;
}

}  // namespace

std::optional<uint64_t> safetensors_bits(std::string_view dtype) {
  const size_t rank = dtype_rank(dtype);
  if (rank == dtypes.size()) return std::nullopt;
  return dtypes[rank].bits;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_bytes,
                                           const std::string& path) {
  const Json json = header_json(text, path);
  HeaderReader reader(path);
  SafetensorsHeader header;
  for (const auto& item : json.items()) {
    if (item.key() == metadata_key) {
      header.metadata = reader.metadata(item.value());
    } else {
      header.tensors.push_back(reader.entry(item.key(), item.value()));
    }
  }
  std::sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t end = 0;
  for (const SafetensorsEntry& entry : header.tensors) {
    reader.check_bytes(entry, end);
    end = entry.end;
  }
  if (end != data_bytes) {
    fail_at(path, length_bytes + text.size(), str("the tensors take ", end, " bytes"),
            str(data_bytes, " bytes after the header"));
  }
  return header;
}

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  InputFile file(path);
  std::array<std::byte, length_bytes> start;
  const uint64_t length =
      ByteReader(std::span(start).first(file.read(start)), path).u64_little_endian(
          "the header's length");
  const uint64_t rest = file.stored_size() - length_bytes;
  if (length > std::min(rest, max_header_bytes)) {
    fail_at(path, 0, str("the header has at most ", std::min(rest, max_header_bytes), " bytes"),
            str(length));
  }
  std::string text(length, '\0');
  if (file.read(std::as_writable_bytes(std::span(text))) != length) {
    fail_at(path, length_bytes, str("a header of ", length, " bytes"), "the file ends inside it");
  }
  SafetensorsHeader header = parse_safetensors_header(text, rest - length, path);
  const size_t size = rest - length;
  data_ = std::make_unique_for_overwrite<std::byte[]>(size);
  const std::span<std::byte> data(data_.get(), size);
  if (file.read(data) != size) {
    fail_at(path, length_bytes + length, str(size, " bytes of tensors"), "the file has shrunk");
  }
  for (SafetensorsEntry& entry : header.tensors) {
    tensors_.push_back({std::move(entry.name), std::move(entry.dtype), std::move(entry.shape),
                        data.subspan(entry.begin, entry.end - entry.begin)});
  }
  for (size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
  metadata_ = std::move(header.metadata);
}

const SafeTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

const SafeTensor& SafetensorsFile::at(std::string_view name) const {
  const SafeTensor* tensor = find(name);
  if (tensor != nullptr) return *tensor;
  std::vector<std::string> names;
  for (const SafeTensor& each : tensors_) names.push_back(each.name);
  throw FileError(path_, str("the file must hold the tensor ", in_quotes(name)),
                  names.empty() ? "no tensors" : quoted_list(names),
                  "pass the weights of this model, or " + suggestion(name, names));
}

}  // namespace tessera
