#include <tessera/framework/io/format/safetensors_header.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/byte_reader.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>

namespace tessera::detail {
namespace {

struct Dtype {
  std::string_view name;
  uint64_t bits;
};

// In the order of the reference implementation, whose writer stores later ones first.
constexpr std::array<Dtype, 22> dtypes{{
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
}};

/// Converts a header's JSON to entries; knows the file and the tensor for errors.
class HeaderReader {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}

  [[noreturn]] void fail(const std::string& expected, const std::string& received) const {
    const std::string subject = tensor_.empty() ? "" : "tensor " + in_quotes(tensor_) + ": ";
    fail_at(path_, safetensors_length_bytes, subject + expected, received);
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
    tensor_ = safetensors_metadata_key;
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
      fail(str("its bytes must begin at ", begin, ", after the previous tensor's"),
           str("[", entry.begin, ", ", entry.end, ")"));
    }
    const auto size = safetensors_bytes(entry.shape, entry.dtype);
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
    if (!json.is_number_unsigned()) fail(str(what, " is a non-negative integer"), show(json));
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

size_t safetensors_rank(std::string_view dtype) {
  const auto found = std::find_if(dtypes.begin(), dtypes.end(),
                                  [&](const Dtype& known) { return known.name == dtype; });
  return static_cast<size_t>(found - dtypes.begin());
}

std::optional<uint64_t> safetensors_bits(std::string_view dtype) {
  const size_t rank = safetensors_rank(dtype);
  if (rank == dtypes.size()) return std::nullopt;
  return dtypes[rank].bits;
}

std::optional<uint64_t> safetensors_bytes(const Shape& shape, std::string_view dtype) {
  std::optional<uint64_t> bits = 1;
  for (int64_t extent : shape) {
    if (bits) bits = checked_mul(*bits, static_cast<uint64_t>(extent));
  }
  if (bits) bits = checked_mul(*bits, safetensors_bits(dtype).value());
  if (!bits || *bits % 8 != 0) return std::nullopt;
  return *bits / 8;
}

SafetensorsHeader parse_safetensors_header(std::string_view text,
                                           std::optional<uint64_t> data_bytes,
                                           const std::string& path) {
  const Json json = header_json(text, path);
  HeaderReader reader(path);
  SafetensorsHeader header;
  for (const auto& item : json.items()) {
    if (item.key() == safetensors_metadata_key) {
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
  if (end != data_bytes.value_or(end)) {
    fail_at(path, safetensors_length_bytes + text.size(), str("the tensors take ", end, " bytes"),
            str(*data_bytes, " bytes after the header"));
  }
  return header;
}

}  // namespace tessera::detail
