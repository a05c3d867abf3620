#include <tessera/framework/base/internal/file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/byte_reader.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/replacing_file.hpp>

namespace tessera::detail {
namespace {

// DEFLATE expands one byte to at most 1032.
constexpr uint64_t max_expansion = 1032;
constexpr size_t chunk_bytes = size_t{1} << 18;

bool begins_as_gzip(int descriptor) {
  constexpr std::array<uint8_t, 2> magic{0x1f, 0x8b};
  std::array<uint8_t, 2> first{};
  return ::pread(descriptor, first.data(), first.size(), 0) == ssize_t{first.size()} &&
         first == magic;
}

}  // namespace

bool exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

/// Decompressor of one gzip file, which may consist of several concatenated members.
class InputFile::Gzip {
 public:
  explicit Gzip(InputFile& file) : file_(file), input_(chunk_bytes) {
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() { inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  size_t read(std::span<std::byte> out) {
    size_t done = 0;
    while (done < out.size() && !ended_) {
      if (stream_.avail_in == 0) refill();
      if (!ended_) done += step(out.subspan(done));
    }
    return done;
  }

 private:
  void refill() {
    const size_t got = file_.read_stored(input_);
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(got);
    consumed_ += got;
    if (got > 0) return;
    if (!at_member_end_) fail("a complete gzip stream", "the file ends inside it");
    ended_ = true;
  }

  size_t step(std::span<std::byte> out) {
    if (at_member_end_ && members_ > 0) inflateReset(&stream_);
    at_member_end_ = false;
    const auto room = static_cast<uInt>(std::min<size_t>(out.size(), chunk_bytes));
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = room;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      at_member_end_ = true;
      ++members_;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      fail("gzip data", stream_.msg != nullptr ? stream_.msg : zError(status));
    }
    return room - stream_.avail_out;
  }

  [[noreturn]] void fail(const std::string& expected, const std::string& received) const {
    fail_at(file_.path_, consumed_ - stream_.avail_in, expected, received);
  }

  InputFile& file_;
  std::vector<std::byte> input_;
  z_stream stream_{};
  uint64_t consumed_ = 0;
  int members_ = 0;
  bool at_member_end_ = false;
  bool ended_ = false;
};

InputFile::InputFile(const std::string& path, Unpack unpack) : path_(path) {
  FileDescriptor opened = open_descriptor(path, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!opened.valid() || ::fstat(opened.get(), &info) != 0) fail_read(path);
  if (!S_ISREG(info.st_mode)) {
    throw FileError(path, "the path must name a regular file",
                    S_ISDIR(info.st_mode) ? "a folder" : "a device, pipe or socket",
                    "pass the path of a file");
  }
  stored_size_ = static_cast<uint64_t>(info.st_size);
  const bool packed =
      unpack == Unpack::by_name ? path.ends_with(".gz") : begins_as_gzip(opened.get());
  if (packed) gzip_ = std::make_unique<Gzip>(*this);
  descriptor_ = opened.release();
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

size_t InputFile::read_stored(std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::read(descriptor_, out.data() + done, out.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_read(path_);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

size_t InputFile::read_stored_at(uint64_t offset, std::span<std::byte> out) const {
  const std::optional<size_t> got = read_at(descriptor_, offset, out);
  if (!got) fail_read(path_);
  return *got;
}

size_t InputFile::read(std::span<std::byte> out) {
  return gzip_ ? gzip_->read(out) : read_stored(out);
}

uint64_t InputFile::stored_size() const { return stored_size_; }

uint64_t InputFile::size_bound() const {
  return gzip_ ? checked_mul(stored_size_, max_expansion).value_or(UINT64_MAX) : stored_size_;
}

std::string read_file(const std::string& path, uint64_t max_bytes) {
  InputFile file(path);
  std::string content;
  std::vector<std::byte> chunk(chunk_bytes);
  while (const size_t got = file.read(chunk)) {
    content.append(reinterpret_cast<const char*>(chunk.data()), got);
    if (content.size() > max_bytes) {
      throw FileError(path, str("the file may hold at most ", max_bytes, " bytes"), "more",
                      "pass a smaller file");
    }
  }
  return content;
}

void write_file_atomically(const std::string& path,
                           std::span<const std::span<const std::byte>> parts, Links links) {
  ReplacingFile file(path, links);
  for (std::span<const std::byte> part : parts) {
    if (!write_all(file.descriptor(), part)) fail_write(path);
  }
  file.commit();
}

void write_file_atomically(const std::string& path, std::string_view text, Links links) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  write_file_atomically(path, std::span(&part, 1), links);
}

}  // namespace tessera::detail
