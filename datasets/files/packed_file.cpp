#include <tessera/datasets/files/packed_file.hpp>

#include <algorithm>
#include <cstring>
#include <string_view>

#include <tessera/datasets/files/unpacking.hpp>

namespace tessera::detail {
namespace {

/// How a file in a compressed format begins.
struct Magic {
  PackedFormat format;
  std::string_view bytes;
};
constexpr Magic magics[] = {{PackedFormat::bzip2, "BZh"},
                            {PackedFormat::xz, std::string_view("\xFD"
                                                                "7zXZ\0",
                                                                6)},
                            {PackedFormat::zstandard, "\x28\xB5\x2F\xFD"},
                            {PackedFormat::zip, "PK\3\4"}};
constexpr size_t longest_magic = 6;

}  // namespace

const char* name_of(PackedFormat format) {
  switch (format) {
    case PackedFormat::bzip2:
      return "bzip2";
    case PackedFormat::xz:
      return "xz";
    case PackedFormat::zstandard:
      return "Zstandard";
    default:
      return "zip";
  }
}

PackedFile::PackedFile(const std::string& path)
    : file_(path, Unpack::by_content), first_(longest_magic, '\0') {
  first_.resize(file_.read(std::as_writable_bytes(std::span(first_))));
  // Gzip is decompressed by InputFile.
  if (file_.size_bound() != file_.stored_size()) return;
  for (const Magic& magic : magics) {
    if (!first_.starts_with(magic.bytes)) continue;
    unpacking_ = std::make_unique<Unpacking>(
        path, magic.format, [this](std::span<std::byte> out) { return read_stored(out); });
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
