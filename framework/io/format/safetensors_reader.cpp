#include <tessera/framework/io/format/safetensors_reader.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/byte_reader.hpp>
#include <tessera/framework/base/internal/checksum.hpp>
#include <tessera/framework/io/format/rectangle_runs.hpp>
#include <tessera/framework/io/format/safetensors_index.hpp>

namespace tessera::detail {

SafetensorsReader::SafetensorsReader(const std::string& path) : path_(path) {
  if (!is_safetensors_index(path)) {
    open(path, nullptr);
    return;
  }
  try {
    for (const auto& [file, names] : read_safetensors_index(path)) open(file, &names);
  } catch (const ConfigError& error) {
    throw FileError(error.what());
  }
}

/// Opens a file with all its tensors, or with those that the index lists.
void SafetensorsReader::open(const std::string& path, const std::vector<std::string>* listed) {
  auto input = std::make_unique<InputFile>(path);
  SafetensorsStart start = read_safetensors_start(*input, path);
  std::unique_ptr<SafetensorsFile> unpacked;
  if (start.packed) unpacked = std::make_unique<SafetensorsFile>(path);
  std::set<std::string_view> missing;
  if (listed) missing.insert(listed->begin(), listed->end());
  for (const SafetensorsEntry& entry : start.header.tensors) {
    if (listed && missing.erase(entry.name) == 0) continue;
    tensors_.push_back({entry.name, entry.dtype, entry.shape, files_.size(), entry.begin});
  }
  if (!missing.empty()) fail_missing_in_file(path, std::string(*missing.begin()), path_);
  files_.push_back({path, std::move(start), std::move(input), std::move(unpacked)});
}

void SafetensorsReader::verify() const {
  for (const File& file : files_) {
    const std::optional<std::string> expected = safetensors_checksum(file.start.header.metadata);
    if (!expected || file.unpacked) continue;  // An unpacked file was verified when it was read.
    Xxh128 checksum;
    std::vector<std::byte> chunk(std::min(file.start.size, uint64_t{1} << 20));
    for (uint64_t at = 0; at < file.start.size; at += chunk.size()) {
      chunk.resize(std::min<uint64_t>(chunk.size(), file.start.size - at));
      read_bytes(file, at, chunk);
      checksum.update(chunk);
    }
    check_safetensors_checksum(file.path, *expected, checksum.digits());
  }
}

void SafetensorsReader::read(const StoredSafeTensor& tensor, const Rectangle& area,
                             std::span<std::byte> out) const {
  if (out.empty()) return;
  const File& file = files_[tensor.file];
  const uint64_t element = *safetensors_bits(tensor.dtype) / 8;
  for_each_run(full_rectangle(tensor.shape), area, element, [&](const CommonRun& run) {
    read_bytes(file, tensor.offset + run.source, out.subspan(run.target, run.bytes));
    bytes_read_ += run.bytes;
  });
}

void SafetensorsReader::read_bytes(const File& file, uint64_t offset,
                                   std::span<std::byte> out) const {
  if (file.unpacked) {
    const std::byte* begin = file.unpacked->tensors().front().data.data() + offset;
    std::copy(begin, begin + out.size(), out.begin());
    return;
  }
  if (file.input->read_stored_at(file.start.begin + offset, out) == out.size()) return;
  fail_at(file.path, file.start.begin + offset, str(out.size(), " bytes of tensors"),
          "the file has shrunk");
}

}  // namespace tessera::detail
