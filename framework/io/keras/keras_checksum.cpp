#include <tessera/framework/io/keras/keras_checksum.hpp>

#include <zlib.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/checksum.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::detail {
namespace {

constexpr uint64_t checksum_chunk_bytes = uint64_t{1} << 20;
/// Beyond any file: compressed data may claim any size.
constexpr uint64_t max_chunks = uint64_t{1} << 40;

uint64_t processes_of(const Mesh& mesh) {
  return static_cast<uint64_t>(mesh.is_local() ? 1 : communicator_of(mesh).size());
}

/// Returns the begin of this process' part of `count` bytes or chunks, and its end.
std::pair<uint64_t, uint64_t> own_part(const Mesh& mesh, uint64_t count) {
  const auto rank = static_cast<uint64_t>(mesh.is_local() ? 0 : communicator_of(mesh).rank());
  const uint64_t processes = processes_of(mesh);
  return {count * rank / processes, count * (rank + 1) / processes};
}

uint32_t crc32_of(const FileDescriptor& file, uint64_t begin, uint64_t end,
                  const std::string& path) {
  std::vector<Bytef> buffer(checksum_chunk_bytes);
  uLong checksum = ::crc32(0, nullptr, 0);
  for (; begin < end; begin += buffer.size()) {
    buffer.resize(std::min<uint64_t>(buffer.size(), end - begin));
    if (read_at(file.get(), begin, std::as_writable_bytes(std::span(buffer))) != buffer.size()) {
      fail_read(path);
    }
    checksum = ::crc32(checksum, buffer.data(), static_cast<uInt>(buffer.size()));
  }
  return static_cast<uint32_t>(checksum);
}

/// Returns attributes as text, in the order of their names.
std::string text_of(const Json& attributes, bool root) {
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : attributes.items()) {
    if (!root || name != hdf5_checksum_name) values[name] = value.dump();
  }
  std::string text;
  for (const auto& [name, value] : values) text += " " + Json(name).dump() + "=" + value;
  return text + "\n";
}

/// Returns the datasets in the order of their paths.
std::vector<const Hdf5Dataset*> datasets_in_order(const Hdf5File& file) {
  std::map<std::string, const Hdf5Dataset*> datasets;
  for (const Hdf5Dataset& dataset : file.datasets()) datasets[dataset.path] = &dataset;
  std::vector<const Hdf5Dataset*> list;
  for (const auto& [path, dataset] : datasets) list.push_back(dataset);
  return list;
}

/// Returns one line for each group and dataset.
std::string structure_of(const Hdf5File& file) {
  std::map<std::string, std::string> groups;
  for (const Hdf5Group& group : file.groups()) {
    groups[group.path] = text_of(group.attributes, group.path.empty());
  }
  std::string text;
  for (const auto& [path, attributes] : groups) text += Json(path).dump() + attributes;
  for (const Hdf5Dataset* dataset : datasets_in_order(file)) {
    text += str(Json(dataset->path).dump(), " ", dataset->dtype, " ", to_string(dataset->shape),
                text_of(dataset->attributes, false));
  }
  return text;
}

uint64_t chunks_of(const Hdf5File& file, const Hdf5Dataset& dataset) {
  // Data of a type that no tensor has are not read.
  const uint64_t bytes = dataset.dtype.empty() ? 0 : bytes_of(dataset, file.path());
  return std::min(bytes / checksum_chunk_bytes + (bytes % checksum_chunk_bytes != 0), max_chunks);
}

/// Returns the checksums of the chunks [begin, end) of all datasets, one after the other.
std::string chunk_checksums(const Hdf5File& file, uint64_t begin, uint64_t end) {
  std::string digits;
  uint64_t first = 0;
  for (const Hdf5Dataset* dataset : datasets_in_order(file)) {
    const uint64_t chunks = chunks_of(file, *dataset);
    const uint64_t from = std::clamp(begin, first, first + chunks) - first;
    const uint64_t to = std::clamp(end, first, first + chunks) - first;
    first += chunks;
    if (from == to) continue;
    file.read_chunks(*dataset, checksum_chunk_bytes, from, to,
                     [&](std::span<const std::byte> chunk) { digits += xxh128(chunk); });
  }
  return digits;
}

}  // namespace

std::string no_hdf5_checksum() { return std::string(32, '?'); }

uint32_t shared_crc32(const Mesh& mesh, const FileDescriptor& file, uint64_t begin, uint64_t end,
                      const std::string& path) {
  const std::vector<std::string> checksums = gather_texts(mesh, path, [&] {
    const auto [from, to] = own_part(mesh, end - begin);
    return str(crc32_of(file, begin + from, begin + to, path), " ", to - from);
  });
  uLong all = ::crc32(0, nullptr, 0);
  for (const std::string& text : checksums) {
    size_t space = 0;
    const uLong checksum = std::stoul(text, &space);
    all = ::crc32_combine(all, checksum, static_cast<z_off_t>(std::stoull(text.substr(space))));
  }
  return static_cast<uint32_t>(all);
}

std::string shared_hdf5_checksum(const Mesh& mesh, const Hdf5File& file) {
  const std::vector<std::string> checksums = gather_texts(mesh, file.path(), [&] {
    uint64_t chunks = 0;
    for (const Hdf5Dataset& dataset : file.datasets()) chunks += chunks_of(file, dataset);
    if (chunks > max_chunks) {
      throw FileError(file.path(), str("at most ", max_chunks, " MiB of data"), str(chunks),
                      "save the model again with Keras or Tessera");
    }
    const auto [begin, end] = own_part(mesh, chunks);
    return chunk_checksums(file, begin, end);
  });
  const std::string all = structure_of(file) + join(checksums, "");
  return xxh128(std::as_bytes(std::span(all)));
}

}  // namespace tessera::detail
