#include <tessera/datasets/files/packed_file.hpp>

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

/// A compressed format, and the functions of libarchive that read it.
struct PackedFormat {
  const char* name;
  std::string_view magic;
  int (*filter)(archive*);
  int (*container)(archive*);
};
constexpr PackedFormat packed_formats[] = {
    {"bzip2", "BZh", archive_read_support_filter_bzip2, archive_read_support_format_raw},
    {"xz",
     std::string_view("\xFD"
                      "7zXZ\0",
                      6),
     archive_read_support_filter_xz, archive_read_support_format_raw},
    {"Zstandard", "\x28\xB5\x2F\xFD", archive_read_support_filter_zstd,
     archive_read_support_format_raw},
    {"zip", "PK\3\4", nullptr, archive_read_support_format_zip_streamable}};
constexpr size_t longest_magic = 6;
constexpr size_t input_bytes = size_t{1} << 16;

}  // namespace

/// Decompressor by libarchive.
class PackedFile::Unpacking {
 public:
  Unpacking(PackedFile& file, const PackedFormat& format)
      : file_(file), format_(format.name), input_(input_bytes, '\0'), reader_(archive_read_new()) {
    if (!reader_) throw std::bad_alloc();
    const bool built_in = (!format.filter || format.filter(reader_.get()) == ARCHIVE_OK) &&
                          format.container(reader_.get()) == ARCHIVE_OK;
    if (!built_in) {
      throw FileError(file.path_, "a format that libarchive reads", format.name,
                      "unpack the file first");
    }
    check(archive_read_open(reader_.get(), this, nullptr, &Unpacking::take, nullptr));
    ended_ = !find_file();
  }

  size_t read(std::span<std::byte> out) {
    size_t done = 0;
    while (done < out.size() && !ended_) {
      const la_ssize_t got = archive_read_data(reader_.get(), out.data() + done, out.size() - done);
      if (got < 0) check(static_cast<int>(got));
      done += static_cast<size_t>(got);
      if (got > 0) continue;
      ended_ = true;
      if (find_file()) {
        throw FileError(file_.path_, "a zip archive of one file", "one of several",
                        "unpack it, and read one of its files");
      }
    }
    return done;
  }

 private:
  /// Callback of libarchive; no exception may pass through it.
  static la_ssize_t take(archive* reader, void* self, const void** out) {
    auto& unpacking = *static_cast<Unpacking*>(self);
    try {
      *out = unpacking.input_.data();
      return static_cast<la_ssize_t>(
          unpacking.file_.read_stored(std::as_writable_bytes(std::span(unpacking.input_))));
    } catch (...) {
      unpacking.failure_ = std::current_exception();
      archive_set_error(reader, EIO, "unreadable");
      return ARCHIVE_FATAL;
    }
  }

  /// Advances to the next entry that is no folder; returns false at the end.
  bool find_file() {
    archive_entry* entry = nullptr;
    for (;;) {
      const int status = archive_read_next_header(reader_.get(), &entry);
      if (status == ARCHIVE_EOF) return false;
      // A warning concerns an entry's name, which is not used.
      if (status != ARCHIVE_WARN) check(status);
      if (archive_entry_filetype(entry) != AE_IFDIR) return true;
    }
  }

  void check(int status) const {
    if (failure_) std::rethrow_exception(failure_);
    if (status == ARCHIVE_OK) return;
    const char* reason = archive_error_string(reader_.get());
    throw FileError(file_.path_, str("a whole ", format_, " file"),
                    one_line(reason == nullptr ? "damaged data" : reason),
                    "get the file again, or unpack it first");
  }

  struct Free {
    void operator()(archive* reader) const { archive_read_free(reader); }
  };

  PackedFile& file_;
  const char* format_;
  std::string input_;
  std::unique_ptr<archive, Free> reader_;
  std::exception_ptr failure_;
  bool ended_ = false;
};

PackedFile::PackedFile(const std::string& path)
    : path_(path), file_(path, Unpack::by_content), first_(longest_magic, '\0') {
  first_.resize(file_.read(std::as_writable_bytes(std::span(first_))));
  // Gzip is decompressed by InputFile.
  if (file_.size_bound() != file_.stored_size()) return;
  for (const PackedFormat& format : packed_formats) {
    if (!first_.starts_with(format.magic)) continue;
    unpacking_ = std::make_unique<Unpacking>(*this, format);
    return;
  }
}

PackedFile::~PackedFile() = default;

size_t PackedFile::read(std::span<std::byte> out) {
  return unpacking_ ? unpacking_->read(out) : read_stored(out);
}

size_t PackedFile::read_stored(std::span<std::byte> out) {
  const size_t kept = std::min(first_.size(), out.size());
  std::memcpy(out.data(), first_.data(), kept);
  first_.erase(0, kept);
  return kept + file_.read(out.subspan(kept));
}

}  // namespace tessera::detail
