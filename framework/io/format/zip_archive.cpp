#include <tessera/framework/io/format/zip_archive.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <set>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/byte_reader.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

// The format: PKWARE's APPNOTE 6.3.10; sections in brackets.
constexpr uint32_t local_mark = 0x04034b50;          // [4.3.7]
constexpr uint32_t entry_mark = 0x02014b50;          // [4.3.12]
constexpr uint32_t end_mark = 0x06054b50;            // [4.3.16]
constexpr uint32_t zip64_end_mark = 0x06064b50;      // [4.3.14], if 32 bits do not suffice
constexpr uint32_t zip64_locator_mark = 0x07064b50;  // [4.3.15]
constexpr uint16_t zip64_field = 1;                  // [4.5.3]
constexpr size_t local_bytes = 30, entry_bytes = 46, end_bytes = 22;
constexpr size_t zip64_end_bytes = 56, zip64_locator_bytes = 20;
constexpr uint32_t none32 = 0xffffffff;
constexpr uint16_t none16 = 0xffff;
constexpr uint64_t max_members = 100000, max_directory = uint64_t{64} << 20;
constexpr uint64_t bomb_bytes = uint64_t{4} << 30, bomb_ratio = 100;

/// Reads a little-endian number; the caller checks the bounds.
template <class T>
T number_at(std::string_view bytes, size_t at) {
  T value = 0;
  for (size_t i = sizeof(T); i-- > 0;) {
    value = static_cast<T>(value << 8 | static_cast<uint8_t>(bytes[at + i]));
  }
  return value;
}

template <class T>
void put(std::string& bytes, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> (8 * i));
}

bool stays_in_folder(std::string_view name) {
  if (name.size() > 1024) return false;
  for (const char c : name) {
    if (c == '\\' || c == ':' || static_cast<uint8_t>(c) < ' ') return false;
  }
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view component = name.substr(begin, end - begin);
    if (component.empty() || component == "." || component == "..") return false;
    begin = end + 1;
  }
  return true;
}

/// The zip64 extra field of an entry: 64-bit values for numbers of 2^32 and more, in order.
class Zip64Numbers {
 public:
  explicit Zip64Numbers(std::string_view extra) {
    while (extra.size() >= 4) {
      const size_t size = number_at<uint16_t>(extra, 2);
      if (size > extra.size() - 4) return;
      if (number_at<uint16_t>(extra, 0) == zip64_field) rest_ = extra.substr(4, size);
      extra.remove_prefix(4 + size);
    }
  }
  /// Replaces `value` if it is marked as too large; false if the field lacks it.
  bool replace(uint64_t& value) {
    if (value != none32) return true;
    if (rest_.size() < 8) return false;
    value = number_at<uint64_t>(rest_, 0);
    rest_.remove_prefix(8);
    return true;
  }

 private:
  std::string_view rest_;
};

/// The bytes of the archive that a member takes, including its header.
struct MemberRange {
  uint64_t begin, end;
  std::string name;
};

class Inflater {
 public:
  Inflater() { ok_ = ::inflateInit2(&stream_, -MAX_WBITS) == Z_OK; }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Passes the decompressed bytes to `take`. Returns false for invalid data.
  bool add(std::string_view bytes, const std::function<void(std::string_view)>& take) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    while (ok_ && !ended_ && (stream_.avail_in > 0 || stream_.avail_out == 0)) {
      stream_.next_out = out_.data();
      stream_.avail_out = static_cast<uInt>(out_.size());
      const int result = ::inflate(&stream_, Z_NO_FLUSH);
      ended_ = result == Z_STREAM_END;
      ok_ = ended_ || result == Z_OK || result == Z_BUF_ERROR;
      const size_t made = out_.size() - stream_.avail_out;
      take({reinterpret_cast<const char*>(out_.data()), made});
      if (result == Z_BUF_ERROR && made == 0) break;
    }
    return ok_ && stream_.avail_in == 0;
  }
  bool ended() const { return ended_; }

 private:
  z_stream stream_{};
  std::array<Bytef, 65536> out_;
  bool ok_ = false, ended_ = false;
};

}  // namespace

ZipArchive::ZipArchive(const std::string& path, std::string fix)
    : path_(path), fix_(std::move(fix)) {
  auto opened = std::make_shared<FileDescriptor>(open_descriptor(path, O_RDONLY | O_NONBLOCK));
  struct stat about {};
  if (!opened->valid() || ::fstat(opened->get(), &about) != 0) fail_read(path);
  if (!S_ISREG(about.st_mode)) fail("a zip archive", "not a regular file");
  file_ = std::move(opened);
  size_ = static_cast<uint64_t>(about.st_size);
  read_directory();
}

void ZipArchive::fail(const std::string& expected, const std::string& received) const {
  throw FileError(path_, expected, received, fix_);
}

std::string ZipArchive::bytes_at(uint64_t offset, uint64_t count) const {
  const std::optional<uint64_t> end = checked_add(offset, count);
  if (!end || *end > size_) fail("an archive that is whole", "one that ends too early");
  std::string bytes(count, '\0');
  const std::optional<size_t> got =
      read_at(file_->get(), offset, std::as_writable_bytes(std::span(bytes)));
  if (!got) fail_read(path_);
  if (*got < count) fail("an archive that is whole", "one that ends too early");
  return bytes;
}

void ZipArchive::read_directory() {
  // The end record may be followed by a comment of up to 64 KiB.
  const uint64_t tail = std::min<uint64_t>(size_, end_bytes + none16);
  const std::string last = bytes_at(size_ - tail, tail);
  size_t end = last.size();
  for (size_t at = 0; at + end_bytes <= last.size(); ++at) {
    const bool is_end_record = number_at<uint32_t>(last, at) == end_mark &&
                               number_at<uint16_t>(last, at + 20) == last.size() - at - end_bytes;
    if (is_end_record) end = at;
  }
  if (end == last.size()) fail("a zip archive", "a file without the end of one");
  uint64_t count = number_at<uint16_t>(last, end + 10);
  uint64_t bytes = number_at<uint32_t>(last, end + 12);
  uint64_t offset = number_at<uint32_t>(last, end + 16);
  uint64_t end_record = size_ - tail + end;
  if (number_at<uint16_t>(last, end + 4) != 0 && number_at<uint16_t>(last, end + 4) != none16) {
    fail("an archive in one file", "a multi-part archive");
  }
  if ((count == none16 || bytes == none32 || offset == none32) &&
      end_record >= zip64_locator_bytes) {
    const std::string link = bytes_at(end_record - zip64_locator_bytes, zip64_locator_bytes);
    if (number_at<uint32_t>(link, 0) == zip64_locator_mark) {
      end_record = number_at<uint64_t>(link, 8);
      const std::string wide = bytes_at(end_record, zip64_end_bytes);
      if (number_at<uint32_t>(wide, 0) != zip64_end_mark) fail("the archive's end", "other bytes");
      count = number_at<uint64_t>(wide, 32);
      bytes = number_at<uint64_t>(wide, 40);
      offset = number_at<uint64_t>(wide, 48);
    }
  }
  const std::optional<uint64_t> directory_end = checked_add(offset, bytes);
  if (count > max_members || bytes > max_directory || !directory_end ||
      *directory_end > end_record) {
    fail("a valid central directory", str(count, " members in ", bytes, " bytes"));
  }
  const std::string directory = bytes_at(offset, bytes);
  std::string_view rest = directory;
  std::set<std::string> names;
  std::vector<MemberRange> ranges;
  for (uint64_t i = 0; i < count; ++i) {
    if (rest.size() < entry_bytes || number_at<uint32_t>(rest, 0) != entry_mark) {
      fail(str(count, " members"), str("a directory of ", i));
    }
    const size_t name_bytes = number_at<uint16_t>(rest, 28);
    const size_t extra_bytes = number_at<uint16_t>(rest, 30);
    const size_t all = entry_bytes + name_bytes + extra_bytes + number_at<uint16_t>(rest, 32);
    if (rest.size() < all) fail("a complete central directory", "a truncated one");
    ZipMember member;
    member.name = rest.substr(entry_bytes, name_bytes);
    const bool folder = member.name.ends_with('/');
    const std::string name = folder ? member.name.substr(0, name_bytes - 1) : member.name;
    const std::string shown = one_line(member.name, 100);
    if (!stays_in_folder(name)) fail("names inside the archive's folder", in_quotes(shown));
    if (!names.insert(name).second) {
      fail("members with unique names", in_quotes(shown) + " twice");
    }
    // Archives made on Unix have the file type in the highest bits.
    const uint32_t kind = number_at<uint32_t>(rest, 38) >> 16 & S_IFMT;
    if (kind != 0 && kind != S_IFREG && !(folder && kind == S_IFDIR)) {
      fail("files", in_quotes(shown) + ", a link or device");
    }
    if ((number_at<uint16_t>(rest, 8) & 1) != 0) fail("files", in_quotes(shown) + ", encrypted");
    const uint16_t method = number_at<uint16_t>(rest, 10);
    if (method != 0 && method != Z_DEFLATED) {
      fail("stored or deflated files", str(in_quotes(shown), ", by method ", method));
    }
    member.packed = method == Z_DEFLATED;
    member.checksum = number_at<uint32_t>(rest, 16);
    member.stored = number_at<uint32_t>(rest, 20);
    member.bytes = number_at<uint32_t>(rest, 24);
    member.offset = number_at<uint32_t>(rest, 42);
    Zip64Numbers wide(rest.substr(entry_bytes + name_bytes, extra_bytes));
    const bool known =
        wide.replace(member.bytes) && wide.replace(member.stored) && wide.replace(member.offset);
    if (!known || (!member.packed && member.stored != member.bytes)) {
      fail("valid member sizes", str(in_quotes(shown), " with invalid ones"));
    }
    rest.remove_prefix(all);
    if (folder) continue;
    const uint64_t begin = member.offset;
    check_local_header(member);
    ranges.push_back({begin, member.offset + member.stored, member.name});
    members_.push_back(std::move(member));
  }
  if (!rest.empty()) fail(str(count, " members"), "a directory of more");
  std::sort(ranges.begin(), ranges.end(),
            [](const MemberRange& a, const MemberRange& b) { return a.begin < b.begin; });
  for (size_t i = 0; i < ranges.size(); ++i) {
    const uint64_t next = i + 1 < ranges.size() ? ranges[i + 1].begin : offset;
    if (ranges[i].end <= next) continue;
    fail("members that do not overlap",
         in_quotes(one_line(ranges[i].name, 100)) + ", which overlaps another");
  }
}

/// Checks the local header, which repeats the name; moves the offset to the bytes.
void ZipArchive::check_local_header(ZipMember& member) const {
  const std::string head = bytes_at(member.offset, local_bytes);
  const size_t name_bytes = number_at<uint16_t>(head, 26);
  const bool named = number_at<uint32_t>(head, 0) == local_mark &&
                     name_bytes == member.name.size() &&
                     bytes_at(member.offset + local_bytes, name_bytes) == member.name;
  if (!named) fail("members at the directory's offsets", in_quotes(one_line(member.name, 100)));
  member.offset += local_bytes + name_bytes + number_at<uint16_t>(head, 28);
  const std::optional<uint64_t> end = checked_add(member.offset, member.stored);
  if (!end || *end > size_) fail("an archive that is whole", "one that ends too early");
}

const ZipMember* ZipArchive::find(std::string_view name) const {
  for (const ZipMember& member : members_) {
    if (member.name == name) return &member;
  }
  return nullptr;
}

void ZipArchive::unpack(const ZipMember& member,
                        const std::function<void(std::string_view)>& take) const {
  constexpr uint64_t unpack_chunk_bytes = uint64_t{1} << 20;
  const std::string shown = in_quotes(one_line(member.name, 100));
  uLong checksum = ::crc32(0, nullptr, 0);
  uint64_t made = 0;
  const auto check = [&](std::string_view bytes) {
    made += bytes.size();
    if (made > member.bytes) fail(str(member.bytes, " bytes of ", shown), "more");
    checksum = ::crc32(checksum, reinterpret_cast<const Bytef*>(bytes.data()),
                       static_cast<uInt>(bytes.size()));
    take(bytes);
  };
  Inflater inflater;
  for (uint64_t done = 0; done < member.stored; done += unpack_chunk_bytes) {
    const std::string chunk =
        bytes_at(member.offset + done, std::min(unpack_chunk_bytes, member.stored - done));
    if (!member.packed) {
      check(chunk);
    } else if (!inflater.add(chunk, check)) {
      fail(shown + " compressed by deflate", "other bytes");
    }
  }
  if (made != member.bytes || (member.packed && !inflater.ended())) {
    fail(str(member.bytes, " bytes of ", shown), std::to_string(made));
  }
  if (checksum != member.checksum) fail(shown + " as it was written", "another checksum");
}

std::string ZipArchive::read(const ZipMember& member, uint64_t max_bytes) const {
  if (member.bytes > max_bytes) {
    fail(str("at most ", max_bytes, " bytes of ", in_quotes(one_line(member.name, 100))),
         std::to_string(member.bytes));
  }
  std::string bytes;
  unpack(member, [&](std::string_view chunk) { bytes += chunk; });
  return bytes;
}

std::shared_ptr<const FileDescriptor> ZipArchive::unpack(const ZipMember& member) const {
  if (member.bytes > bomb_bytes && member.bytes / bomb_ratio > member.stored) {
    fail(str("at most 100 times the ", member.stored, " bytes that are stored"),
         str(member.bytes, " bytes of ", in_quotes(one_line(member.name, 100))));
  }
  const std::string folder = std::filesystem::temp_directory_path();
  auto file = std::make_shared<FileDescriptor>(
      open_descriptor(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file->valid()) fail_write(folder);
  unpack(member, [&](std::string_view chunk) {
    if (!write_all(file->get(), std::as_bytes(std::span(chunk)))) fail_write(folder);
  });
  return file;
}

std::string zip_header(const ZipMember& member) {
  const bool wide = member.wide || member.bytes >= none32;
  std::string bytes;
  put<uint32_t>(bytes, local_mark);
  put<uint16_t>(bytes, wide ? 45 : 20);
  put<uint16_t>(bytes, 0x800);  // the name is UTF-8
  put<uint16_t>(bytes, 0);
  put<uint32_t>(bytes, 0x210000);  // midnight of 1980-01-01: equal models make equal archives
  put<uint32_t>(bytes, member.checksum);
  for (int i = 0; i < 2; ++i) put(bytes, wide ? none32 : static_cast<uint32_t>(member.bytes));
  put(bytes, static_cast<uint16_t>(member.name.size()));
  put<uint16_t>(bytes, wide ? 20 : 0);
  bytes += member.name;
  if (!wide) return bytes;
  put(bytes, zip64_field);
  put<uint16_t>(bytes, 16);
  for (int i = 0; i < 2; ++i) put(bytes, member.bytes);
  return bytes;
}

std::string zip_directory(const std::vector<ZipMember>& members, uint64_t offset) {
  std::string bytes;
  for (const ZipMember& member : members) {
    const std::string local = zip_header(member);
    const uint64_t begin = member.offset - local.size();
    std::string extra;
    for (const uint64_t number : {member.bytes, member.bytes, begin}) {
      if (number >= none32) put(extra, number);
    }
    const auto low = [](uint64_t number) {
      return static_cast<uint32_t>(std::min<uint64_t>(number, none32));
    };
    put(bytes, entry_mark);
    put<uint16_t>(bytes, 3 << 8 | 45);  // Unix
    bytes += local.substr(4, 10);
    put(bytes, member.checksum);
    for (int i = 0; i < 2; ++i) put(bytes, low(member.bytes));
    put(bytes, static_cast<uint16_t>(member.name.size()));
    put(bytes, static_cast<uint16_t>(extra.empty() ? 0 : extra.size() + 4));
    put<uint16_t>(bytes, 0);
    put<uint32_t>(bytes, 0);
    put<uint32_t>(bytes, uint32_t{S_IFREG | 0600} << 16);
    put(bytes, low(begin));
    bytes += member.name;
    if (extra.empty()) continue;
    put(bytes, zip64_field);
    put(bytes, static_cast<uint16_t>(extra.size()));
    bytes += extra;
  }
  const uint64_t size = bytes.size(), end = offset + size;
  const bool wide = members.size() >= none16 || size >= none32 || offset >= none32;
  if (wide) {
    put(bytes, zip64_end_mark);
    put<uint64_t>(bytes, zip64_end_bytes - 12);
    put<uint16_t>(bytes, 3 << 8 | 45);
    put<uint16_t>(bytes, 45);
    put<uint64_t>(bytes, 0);
    for (int i = 0; i < 2; ++i) put<uint64_t>(bytes, members.size());
    put(bytes, size);
    put(bytes, offset);
    put(bytes, zip64_locator_mark);
    put<uint32_t>(bytes, 0);
    put(bytes, end);
    put<uint32_t>(bytes, 1);
  }
  put(bytes, end_mark);
  put<uint32_t>(bytes, 0);
  for (int i = 0; i < 2; ++i) {
    put(bytes, static_cast<uint16_t>(std::min<size_t>(members.size(), none16)));
  }
  put(bytes, static_cast<uint32_t>(wide ? none32 : size));
  put(bytes, static_cast<uint32_t>(wide ? none32 : offset));
  put<uint16_t>(bytes, 0);
  return bytes;
}

}  // namespace tessera::detail
