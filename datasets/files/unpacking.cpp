#include <tessera/datasets/files/unpacking.hpp>

#include <archive.h>
#include <archive_entry.h>

#include <cerrno>
#include <exception>
#include <new>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

constexpr size_t input_bytes = size_t{1} << 16;

/// Makes a reader of libarchive accept a format; returns whether libarchive was built with it.
bool accept_format(archive* reader, PackedFormat format) {
  if (format == PackedFormat::zip) {
    return archive_read_support_format_zip_streamable(reader) == ARCHIVE_OK;
  }
  const auto filter = format == PackedFormat::bzip2 ? archive_read_support_filter_bzip2
                      : format == PackedFormat::xz  ? archive_read_support_filter_xz
                                                    : archive_read_support_filter_zstd;
  return filter(reader) == ARCHIVE_OK && archive_read_support_format_raw(reader) == ARCHIVE_OK;
}

}  // namespace

class Unpacking::Reader {
 public:
  Reader(const std::string& path, PackedFormat format, ReadStored read_stored)
      : path_(path),
        format_(name_of(format)),
        read_stored_(std::move(read_stored)),
        input_(input_bytes, '\0'),
        reader_(archive_read_new()) {
    if (!reader_) throw std::bad_alloc();
    if (!accept_format(reader_.get(), format)) {
      throw FileError(path, "a format that libarchive reads", format_, "unpack the file first");
    }
    check(archive_read_open(reader_.get(), this, nullptr, &Reader::take, nullptr));
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
        throw FileError(path_, "a zip archive of one file", "one of several",
                        "unpack it, and read one of its files");
      }
    }
    return done;
  }

 private:
  /// Callback of libarchive; no exception may pass through it.
  static la_ssize_t take(archive* archive_reader, void* self, const void** out) {
    auto& reader = *static_cast<Reader*>(self);
    try {
      *out = reader.input_.data();
      return static_cast<la_ssize_t>(
          reader.read_stored_(std::as_writable_bytes(std::span(reader.input_))));
    } catch (...) {
      reader.failure_ = std::current_exception();
      archive_set_error(archive_reader, EIO, "unreadable");
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
    throw FileError(path_, str("a whole ", format_, " file"),
                    one_line(reason == nullptr ? "damaged data" : reason),
                    "get the file again, or unpack it first");
  }

  struct Free {
    void operator()(archive* reader) const { archive_read_free(reader); }
  };

  std::string path_;
  const char* format_;
  ReadStored read_stored_;
  std::string input_;
  std::unique_ptr<archive, Free> reader_;
  std::exception_ptr failure_;
  bool ended_ = false;
};

Unpacking::Unpacking(const std::string& path, PackedFormat format, ReadStored read_stored)
    : reader_(std::make_unique<Reader>(path, format, std::move(read_stored))) {}

Unpacking::~Unpacking() = default;

size_t Unpacking::read(std::span<std::byte> out) { return reader_->read(out); }

}  // namespace tessera::detail
