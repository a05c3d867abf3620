#include <tessera/datasets/files/archive.hpp>

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <unordered_set>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/byte_reader.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

constexpr size_t chunk_bytes = size_t{1} << 18;
constexpr uint64_t free_bytes = uint64_t{1} << 20;
constexpr int64_t tar_block_bytes = 512;
constexpr size_t max_name_bytes = 4096;

[[noreturn]] void refuse(const std::string& where, const std::string& expected,
                         const std::string& received) {
  throw FileError(where, expected, received,
                  "the archive is damaged or malicious; get it again from its source");
}

/// The archive's bytes, decompressed here because libarchive ignores gzip's checksum.
class Source {
 public:
  Source(const std::string& path, const ArchiveLimits& limits)
      : path_(path), file_(path, Unpack::by_content), chunk_(chunk_bytes) {
    const uint64_t stored = checked_mul(file_.stored_size(), limits.ratio).value_or(UINT64_MAX);
    const uint64_t by_ratio = checked_add(stored, free_bytes).value_or(UINT64_MAX);
    limit_ = std::min(limits.total_bytes, by_ratio);
  }

  std::span<const std::byte> next() {
    start_ += count_;
    count_ = file_.read(chunk_);
    if (start_ + count_ > limit_) {
      refuse(path_,
             str("an archive of ", file_.stored_size(), " bytes may unpack to at most ", limit_),
             "more");
    }
    return std::span(chunk_).first(count_);
  }

  /// Returns the bytes of the last chunk from a position of the unpacked archive on.
  std::span<const std::byte> rest(uint64_t position) const {
    const uint64_t passed = std::clamp(position, start_, start_ + count_) - start_;
    return std::span(chunk_).subspan(passed, count_ - passed);
  }

 private:
  std::string path_;
  InputFile file_;
  std::vector<std::byte> chunk_;
  uint64_t limit_ = 0;
  uint64_t start_ = 0;
  size_t count_ = 0;
};

/// Returns a name without its empty and "." components. Throws FileError at `where` for an unsafe
/// name.
std::string safe_name(const std::string& name, const std::string& where) {
  if (name.starts_with('/')) refuse(where, "names in an archive are relative", "an absolute one");
  if (name.find('\\') != std::string::npos) {
    refuse(where, "names in an archive have no backslash", "one with it");
  }
  std::string safe;
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string component = name.substr(begin, end - begin);
    if (component == "..") refuse(where, "names in an archive stay inside it", R"(one with "..")");
    if (!component.empty() && component != ".") safe += (safe.empty() ? "" : "/") + component;
    begin = end + 1;
  }
  return safe;
}

struct Free {
  void operator()(archive* reader) const { archive_read_free(reader); }
};

class TarReader {
 public:
  TarReader(const std::string& path, const ArchiveLimits& limits)
      : path_(path), limits_(limits), source_(path, limits), reader_(archive_read_new()) {
    if (!reader_) throw std::bad_alloc();
    archive_read_support_format_tar(reader_.get());
    check(archive_read_open(reader_.get(), this, nullptr, &TarReader::read, nullptr));
  }

  /// Advances to the next entry; returns false at the end of the archive, which is checked too.
  bool next() {
    entry_ = nullptr;
    const int status = archive_read_next_header(reader_.get(), &entry_);
    if (status == ARCHIVE_EOF) {
      check_end();
      return false;
    }
    name_.clear();
    check(status);
    if (++entries_ > limits_.entries) {
      refuse(path_, str("an archive has at most ", limits_.entries, " entries"), "more");
    }
    read_name();
    check_kind();
    return true;
  }

  const std::string& name() const { return name_; }
  bool is_file() const { return archive_entry_filetype(entry_) == AE_IFREG; }

  void check_size() const {
    if (archive_entry_size(entry_) <= static_cast<int64_t>(limits_.file_bytes)) return;
    refuse(where(), str("a file has at most ", limits_.file_bytes, " bytes"),
           str(archive_entry_size(entry_)));
  }

  /// Reads the entry's bytes in blocks.
  template <class Take>
  void read_data(const Take& take) {
    while (true) {
      const void* data = nullptr;
      size_t size = 0;
      // Sparse files are refused, so each block begins where the last one ended.
      la_int64_t offset = 0;
      const int status = archive_read_data_block(reader_.get(), &data, &size, &offset);
      if (status == ARCHIVE_EOF) return;
      check(status);
      take(std::string_view(static_cast<const char*>(data), size));
    }
  }

 private:
  /// Callback of libarchive; no exception may pass through it.
  static la_ssize_t read(archive* reader, void* self, const void** out) {
    auto& tar = *static_cast<TarReader*>(self);
    try {
      const std::span<const std::byte> bytes = tar.source_.next();
      *out = bytes.data();
      return static_cast<la_ssize_t>(bytes.size());
    } catch (...) {
      tar.failure_ = std::current_exception();
      archive_set_error(reader, EIO, "unreadable");
      return ARCHIVE_FATAL;
    }
  }

  std::string where() const {
    return name_.empty() ? path_ : str(path_, ", entry ", in_quotes(name_));
  }

  void check(int status) const {
    if (failure_) std::rethrow_exception(failure_);
    if (status == ARCHIVE_OK) return;
    const char* reason = archive_error_string(reader_.get());
    refuse(where(), "a whole tar archive, plain or gzip",
           one_line(reason == nullptr ? "an invalid entry" : reason));
  }

  void read_name() {
    const char* name = archive_entry_pathname(entry_);
    const std::string stored = name == nullptr ? "" : name;
    name_ = stored.substr(0, max_name_bytes);
    if (stored.empty() || stored.size() > max_name_bytes) {
      refuse(where(), str("a name has 1 to ", max_name_bytes, " bytes"), str(stored.size()));
    }
    name_ = safe_name(stored, where());
  }

  void check_kind() const {
    if (archive_entry_hardlink(entry_) != nullptr) {
      refuse(where(), "an archive holds files and folders", "a hard link");
    }
    if (archive_entry_sparse_count(entry_) > 0) {
      refuse(where(), "an archive holds files and folders", "a sparse file");
    }
    const auto kind = archive_entry_filetype(entry_);
    if (kind == AE_IFREG || kind == AE_IFDIR) return;
    refuse(where(), "an archive holds files and folders",
           kind == AE_IFLNK ? "a symbolic link" : "a device, pipe or socket");
  }

  /// Throws FileError unless the archive ends with a block of zeros and only zeros follow.
  void check_end() {
    if (failure_) std::rethrow_exception(failure_);
    const int64_t position = archive_filter_bytes(reader_.get(), 0);
    if (position - archive_read_header_position(reader_.get()) < tar_block_bytes) {
      refuse(path_, "an archive ends with its end mark", "an archive that is cut short");
    }
    std::span<const std::byte> bytes = source_.rest(static_cast<uint64_t>(position));
    do {
      if (std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; })) {
        refuse(path_, "nothing follows the end of an archive", "more bytes");
      }
      bytes = source_.next();
    } while (!bytes.empty());
  }

  std::string path_;
  ArchiveLimits limits_;
  Source source_;
  std::unique_ptr<archive, Free> reader_;
  std::exception_ptr failure_;
  archive_entry* entry_ = nullptr;
  std::string name_;
  uint64_t entries_ = 0;
};

}  // namespace

void read_archive(const std::string& path, const std::function<bool(std::string_view name)>& filter,
                  const std::function<void(std::string_view name, std::string_view bytes)>& take,
                  const ArchiveLimits& limits) {
  TarReader tar(path, limits);
  std::unordered_set<std::string> taken;
  std::string bytes;
  while (tar.next()) {
    if (!tar.is_file() || !filter(tar.name())) {
      // Read in blocks so that the limits apply: libarchive would skip any number of bytes at once.
      tar.read_data([](std::string_view) {});
      continue;
    }
    tar.check_size();
    if (!taken.insert(tar.name()).second) {
      refuse(str(path, ", entry ", in_quotes(tar.name())), "a file is in an archive once", "twice");
    }
    bytes.clear();
    tar.read_data([&](std::string_view block) { bytes += block; });
    take(tar.name(), bytes);
  }
}

}  // namespace tessera::detail
