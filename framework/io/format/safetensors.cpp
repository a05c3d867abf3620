#include <tessera/framework/io/format/safetensors.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/byte_reader.hpp>
#include <tessera/framework/base/internal/checksum.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/io/format/safetensors_header.hpp>

namespace tessera::detail {
namespace {

void check_tensor(const SafeTensor& tensor, const std::string& path) {
  const std::string where = str(path, ", tensor ", in_quotes(tensor.name));
  if (!is_safetensors_name(tensor.name)) {
    throw ConfigError(where, "a tensor's name must be UTF-8 and not the metadata key",
                      in_quotes(tensor.name), "rename the tensor");
  }
  if (!safetensors_bits(tensor.dtype)) {
    throw ConfigError(where, "the dtype must be one of the safetensors format",
                      in_quotes(tensor.dtype), "use a name such as F32");
  }
  const bool negative = std::any_of(tensor.shape.begin(), tensor.shape.end(),
                                    [](int64_t extent) { return extent < 0; });
  if (negative || safetensors_bytes(tensor.shape, tensor.dtype) != tensor.data.size()) {
    throw ConfigError(
        where, str("the data must fit ", tensor.dtype, " of shape ", to_string(tensor.shape)),
        str(tensor.data.size(), " bytes"), "pass all elements, and no more");
  }
}

/// Checks the tensors and sorts them into the order of the file.
void arrange(std::vector<SafeTensor>& tensors, const std::string& path) {
  for (const SafeTensor& tensor : tensors) check_tensor(tensor, path);
  std::sort(tensors.begin(), tensors.end(), [](const SafeTensor& a, const SafeTensor& b) {
    const size_t rank_a = safetensors_rank(a.dtype);
    const size_t rank_b = safetensors_rank(b.dtype);
    return rank_a != rank_b ? rank_a > rank_b : a.name < b.name;
  });
  std::vector<std::string_view> names;
  for (const SafeTensor& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    throw ConfigError(path, "every tensor must have a unique name", in_quotes(*twice) + " twice",
                      "rename one of the two");
  }
}

/// Returns the header's length and text, padded so that the data begin at a multiple of 8.
std::string header_bytes(const std::vector<SafeTensor>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  auto& entries = header.get_ref<Json::object_t&>();
  if (!metadata.empty()) entries.emplace_back(safetensors_metadata_key, metadata);
  uint64_t end = 0;
  for (const SafeTensor& tensor : tensors) {
    const uint64_t begin = std::exchange(end, end + tensor.data.size());
    entries.emplace_back(
        tensor.name,
        Json{{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}});
  }
  std::string text = to_json_text(header, -1);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length(safetensors_length_bytes, '\0');
  for (size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(text.size() >> 8 * i);
  return length + text;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  InputFile file(path);
  SafetensorsStart start = read_safetensors_start(file, path);
  data_ = std::make_unique_for_overwrite<std::byte[]>(start.size);
  const std::span<std::byte> data(data_.get(), start.size);
  if (file.read(data) != start.size) {
    fail_at(path, start.begin, str(start.size, " bytes of tensors"),
            start.packed ? "the file ends inside them" : "the file has shrunk");
  }
  std::array<std::byte, 1> more;
  if (file.read(more) != 0) {
    fail_at(path, start.begin + start.size, "the end of the file", "more bytes");
  }
  for (SafetensorsEntry& entry : start.header.tensors) {
    tensors_.push_back({std::move(entry.name), std::move(entry.dtype), std::move(entry.shape),
                        data.subspan(entry.begin, entry.end - entry.begin)});
  }
  for (size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
  metadata_ = std::move(start.header.metadata);
  const std::optional<std::string> expected = safetensors_checksum(metadata_);
  if (expected) check_safetensors_checksum(path_, *expected, xxh128(data));
}

SafetensorsStart read_safetensors_start(InputFile& file, const std::string& path) {
  std::array<std::byte, safetensors_length_bytes> start;
  const uint64_t length = ByteReader(std::span(start).first(file.read(start)), path)
                              .u64_little_endian("the header's length");
  // In a compressed file only the header tells how much follows.
  const bool packed = file.size_bound() != file.stored_size();
  const uint64_t rest =
      std::max(file.size_bound(), safetensors_length_bytes) - safetensors_length_bytes;
  if (length > std::min(rest, max_safetensors_header)) {
    fail_at(path, 0,
            str("the header has at most ", std::min(rest, max_safetensors_header), " bytes"),
            str(length));
  }
  std::string text(length, '\0');
  if (file.read(std::as_writable_bytes(std::span(text))) != length) {
    fail_at(path, safetensors_length_bytes, str("a header of ", length, " bytes"),
            "the file ends inside it");
  }
  const std::optional<uint64_t> known =
      packed ? std::nullopt : std::optional<uint64_t>(rest - length);
  SafetensorsHeader header = parse_safetensors_header(text, known, path);
  const uint64_t size = header.tensors.empty() ? 0 : header.tensors.back().end;
  if (size > rest - length) {
    fail_at(path, safetensors_length_bytes, str("tensors of at most ", rest - length, " bytes"),
            str(size));
  }
  return {std::move(header), safetensors_length_bytes + length, size, packed};
}

std::optional<std::string> safetensors_checksum(
    const std::map<std::string, std::string>& metadata) {
  const auto format = metadata.find("format"), stored = metadata.find(safetensors_checksum_key);
  const bool ours = format != metadata.end() && format->second == "tessera";
  if (!ours || stored == metadata.end()) return std::nullopt;
  return stored->second;
}

void check_safetensors_checksum(const std::string& path, const std::string& expected,
                                const std::string& actual) {
  if (actual == expected) return;
  throw FileError(
      path, str("the tensors have the checksum in the metadata, ", one_line(expected, 40)), actual,
      "the file is damaged: restore a copy, or save it again; or remove the metadata, if "
      "another program changed it");
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

bool is_safetensors_name(std::string_view name) {
  if (name == safetensors_metadata_key) return false;
  while (!name.empty()) {
    const size_t length = utf8_length(name);
    if (length == 0) return false;
    name.remove_prefix(length);
  }
  return true;
}

std::string begin_safetensors(std::vector<SafeTensor>& tensors,
                              const std::map<std::string, std::string>& metadata,
                              const std::string& path) {
  arrange(tensors, path);
  std::string header = header_bytes(tensors, metadata);
  if (header.size() > safetensors_length_bytes + max_safetensors_header) {
    throw ConfigError(path, str("the header must take at most ", max_safetensors_header, " bytes"),
                      str(header.size()), "write fewer tensors, or shorter metadata");
  }
  return header;
}

void write_safetensors(const std::string& path, std::vector<SafeTensor> tensors,
                       std::map<std::string, std::string> metadata) {
  const auto checksum = metadata.find(safetensors_checksum_key);
  if (checksum != metadata.end()) {
    arrange(tensors, path);
    Xxh128 data;
    for (const SafeTensor& tensor : tensors) data.update(tensor.data);
    checksum->second = data.digits();
  }
  const std::string header = begin_safetensors(tensors, metadata, path);
  std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(header))};
  for (const SafeTensor& tensor : tensors) parts.push_back(tensor.data);
  write_file_atomically(path, parts);
}

}  // namespace tessera::detail
