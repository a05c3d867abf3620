#include <tessera/framework/io/format/checkpoint_files.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/byte_reader.hpp>
#include <tessera/framework/base/internal/checksum.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/safetensors_header.hpp>

namespace tessera::detail {
namespace {

constexpr const char* damaged_fix = "restore the file, or use another checkpoint";

// Maximum number of open files of a checkpoint; systems allow a process 1024 in all, or more.
constexpr size_t max_open_files = 256;

std::string read_index(const std::shared_ptr<const FileDescriptor>& folder,
                       const std::string& path) {
  const StoredFile index(folder, path, checkpoint_index_file);
  if (index.size() > max_checkpoint_index) {
    throw FileError(index.path(), str("an index of at most ", max_checkpoint_index, " bytes"),
                    str(index.size()), damaged_fix);
  }
  const StoredFile checksum(folder, path, checkpoint_checksum_file);
  const std::string text = index.text(index.size());
  const std::string expected = checkpoint_checksum_text(text);
  const std::string stored =
      checksum.size() == expected.size() ? checksum.text(expected.size()) : "";
  if (stored != expected) {
    throw FileError(index.path(), str("the checksum in ", checkpoint_checksum_file),
                    "another checksum", damaged_fix);
  }
  return text;
}

/// Returns a shard file's bytes before its data, verified against the index's checksum.
std::string read_header(const StoredFile& file, const CheckpointShard& shard) {
  if (file.size() != shard.bytes) {
    throw FileError(file.path(), str(shard.bytes, " bytes"), str(file.size()), damaged_fix);
  }
  const uint64_t rest = std::max(file.size(), safetensors_length_bytes) - safetensors_length_bytes;
  const std::string start = file.text(std::min(file.size(), safetensors_length_bytes));
  const uint64_t length = ByteReader(std::as_bytes(std::span(start)), file.path())
                              .u64_little_endian("the header's length");
  const uint64_t limit = std::min(rest, max_safetensors_header);
  if (length > limit) fail_at(file.path(), 0, str("a header of at most ", limit), str(length));
  std::string header = file.text(safetensors_length_bytes + length);
  if (xxh128(std::as_bytes(std::span(header))) != shard.header_checksum) {
    throw FileError(file.path(), "a header with the index's checksum", "another checksum",
                    damaged_fix);
  }
  return header;
}

}  // namespace

StoredFile::StoredFile(std::shared_ptr<const FileDescriptor> folder, const std::string& folder_path,
                       const std::string& name)
    : folder_(std::move(folder)), name_(name), path_(folder_path + "/" + name) {
  struct stat info {};
  descriptor_ = open(info);
  size_ = static_cast<uint64_t>(info.st_size);
  inode_ = info.st_ino;
}

FileDescriptor StoredFile::open(struct stat& info) const {
  FileDescriptor opened = open_descriptor(*folder_, name_, O_RDONLY | O_NONBLOCK);
  if (!opened.valid() || ::fstat(opened.get(), &info) != 0) fail_read(path_);
  if (S_ISREG(info.st_mode)) return opened;
  throw FileError(path_, "a regular file", "a folder, device, pipe or socket", damaged_fix);
}

void StoredFile::read(uint64_t at, std::span<std::byte> out) const {
  FileDescriptor reopened;
  if (!descriptor_.valid()) {
    struct stat info {};
    reopened = open(info);
    if (info.st_ino != inode_) {
      throw FileError(path_, "the same file as when the checkpoint was opened", "another file",
                      "open the checkpoint again");
    }
  }
  const int descriptor = descriptor_.valid() ? descriptor_.get() : reopened.get();
  const std::optional<size_t> got = read_at(descriptor, at, out);
  if (!got) fail_read(path_);
  if (*got == out.size()) return;
  fail_at(path_, at + *got, str(out.size() - *got, " more bytes"), "the file ends");
}

std::string StoredFile::text(uint64_t count) const {
  std::string bytes(count, '\0');
  read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

CheckpointFiles::CheckpointFiles(const std::shared_ptr<const FileDescriptor>& folder,
                                 const std::string& path)
    : path_(path),
      index_(parse_checkpoint_index(read_index(folder, path), path + "/" + checkpoint_index_file)) {
  for (size_t i = 0; i < index_.shards.size(); ++i) {
    files_.emplace_back(folder, path, checkpoint_shard_file(i));
    if (i >= max_open_files) files_.back().close();
  }
  locate_pieces();
}

void CheckpointFiles::locate_pieces() {
  std::vector<std::unordered_map<std::string, PieceId>> pieces(files_.size());
  std::vector<std::string> contents(files_.size());
  for (size_t t = 0; t < index_.tensors.size(); ++t) {
    const StoredTensor& stored = index_.tensors[t];
    offsets_.emplace_back(stored.pieces.size());
    for (size_t p = 0; p < stored.pieces.size(); ++p) {
      const StoredPiece& piece = stored.pieces[p];
      const std::string name = checkpoint_piece_name(stored.tensor, piece.area);
      if (!pieces[piece.shard].emplace(name, PieceId{t, p}).second) {
        throw FileError(files_[piece.shard].path(), "every piece has a unique name",
                        in_quotes(name) + " twice", damaged_fix);
      }
      for (const std::string& checksum : piece.checksums) contents[piece.shard] += checksum;
    }
  }
  for (size_t i = 0; i < files_.size(); ++i) find_offsets(i, pieces[i], contents[i]);
}

void CheckpointFiles::find_offsets(size_t shard,
                                   const std::unordered_map<std::string, PieceId>& pieces,
                                   const std::string& checksums) {
  const StoredFile& file = files_[shard];
  const std::string text = read_header(file, index_.shards[shard]);
  const SafetensorsHeader header =
      parse_safetensors_header(std::string_view(text).substr(safetensors_length_bytes),
                               file.size() - text.size(), file.path());
  const auto fail = [&](const std::string& tensor, const std::string& expected,
                        const std::string& received) {
    throw FileError(str(file.path(), ", tensor ", in_quotes(tensor)), expected, received,
                    damaged_fix);
  };
  if (header.metadata != checkpoint_metadata(checksums)) {
    throw FileError(file.path(), "metadata that match the index", "other metadata", damaged_fix);
  }
  if (header.tensors.size() != pieces.size()) {
    throw FileError(file.path(), str("the ", pieces.size(), " tensors of the index"),
                    str(header.tensors.size()), damaged_fix);
  }
  for (const SafetensorsEntry& entry : header.tensors) {
    const auto it = pieces.find(entry.name);
    if (it == pieces.end()) fail(entry.name, "a tensor of the index", "an unknown name");
    const StoredTensor& stored = index_.tensors[it->second.tensor];
    const Shape shape = stored.pieces[it->second.piece].area.shape();
    if (entry.dtype != stored.tensor.dtype || entry.shape != shape) {
      fail(entry.name, str("dtype ", stored.tensor.dtype, " and shape ", to_string(shape)),
           str(entry.dtype, " and ", to_string(entry.shape)));
    }
    offsets_[it->second.tensor][it->second.piece] = text.size() + entry.begin;
  }
}

void CheckpointFiles::read_chunk(size_t tensor, size_t piece, uint64_t chunk,
                                 std::span<std::byte> out) const {
  const StoredTensor& stored = index_.tensors[tensor];
  const StoredPiece& stored_piece = stored.pieces[piece];
  const StoredFile& file = files_[stored_piece.shard];
  const uint64_t begin = offsets_[tensor][piece] + chunk * checkpoint_chunk_bytes;
  file.read(begin, out);
  bytes_read_ += out.size();
  if (xxh128(out) == stored_piece.checksums[chunk]) return;
  throw FileError(str(file.path(), ", tensor ", in_quotes(stored.tensor.name)),
                  str("bytes ", begin, " to ", begin + out.size(), " with the index's checksum"),
                  "other bytes", damaged_fix);
}

void CheckpointFiles::verify_headers() const {
  for (size_t i = 0; i < files_.size(); ++i) read_header(files_[i], index_.shards[i]);
}

}  // namespace tessera::detail
