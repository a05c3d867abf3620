#include <tessera/datasets/pipeline/internal/element_file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/byte_reader.hpp>
#include <tessera/framework/base/internal/checksum.hpp>
#include <tessera/framework/base/internal/replacing_file.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

constexpr std::string_view file_magic = "tessera elements 1\n";
constexpr size_t digits = 32;
constexpr size_t end_size = 128;
/// Elements that are made in memory before they are written.
constexpr int64_t written_at_a_time = 256;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void put(std::string& to, uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) to += static_cast<char>(number >> shift);
}

void put(std::string& to, const std::vector<at::Tensor>& tensors) {
  put(to, tensors.size());
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor contiguous = tensor.resolve_conj().resolve_neg().contiguous();
    put(to, static_cast<uint64_t>(contiguous.scalar_type()));
    put(to, static_cast<uint64_t>(contiguous.dim()));
    for (const int64_t extent : contiguous.sizes()) put(to, static_cast<uint64_t>(extent));
    to.append(static_cast<const char*>(contiguous.const_data_ptr()), contiguous.nbytes());
  }
}

/// Returns the bytes of an element, its checksum first.
std::string record_of(const Examples& element) {
  std::string text;
  for (const auto* tensors : {&element.x, &element.y, &element.sample_weight}) put(text, *tensors);
  return xxh128(bytes_of(text)) + text;
}

bool is_stored(uint64_t dtype) {
  return dtype < static_cast<uint64_t>(at::ScalarType::NumOptions) &&
         (c10::isIntegralType(at::ScalarType(dtype), true) ||
          c10::isFloatingType(at::ScalarType(dtype)) || c10::isComplexType(at::ScalarType(dtype)));
}

std::vector<at::Tensor> read_tensors(ByteReader& reader) {
  const uint64_t count = reader.u64_little_endian("tensors");
  std::vector<at::Tensor> tensors;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t dtype = reader.u64_little_endian("dtype");
    if (!is_stored(dtype)) reader.fail("a dtype of numbers", std::to_string(dtype));
    const uint64_t rank = reader.u64_little_endian("axes");
    std::optional<uint64_t> bytes = c10::elementSize(at::ScalarType(dtype));
    Shape shape;
    for (uint64_t axis = 0; axis < rank; ++axis) {
      const uint64_t extent = reader.u64_little_endian("extent");
      bytes = bytes ? checked_mul(*bytes, extent) : bytes;
      shape.push_back(static_cast<int64_t>(extent));
    }
    if (!bytes) reader.fail("a tensor's size", to_string(shape));
    const std::span<const std::byte> data = reader.take(*bytes, "a tensor");
    at::Tensor tensor = at::empty(shape, at::ScalarType(dtype));
    if (!data.empty()) std::memcpy(tensor.mutable_data_ptr(), data.data(), data.size());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Examples element_of(std::span<const std::byte> bytes, const std::string& path) {
  ByteReader reader(bytes, path);
  Examples element;
  for (auto* tensors : {&element.x, &element.y, &element.sample_weight})
    *tensors = read_tensors(reader);
  return element;
}

/// Returns a hash that identifies the data: how elements are made, how many there are, and the
/// first, middle and last of them.
std::string fingerprint_of(const PipelineElements& elements, const std::string& text) {
  const int64_t size = elements.size().value();
  Xxh128 hash;
  hash.update(bytes_of(str(text, " ", size)));
  if (size > 0) {
    const int64_t some[] = {0, size / 2, size - 1};
    for (const Examples& element : elements.get(some)) hash.update(bytes_of(record_of(element)));
  }
  return hash.digits();
}

void write(int descriptor, const std::string& path, std::string_view text) {
  if (!write_all(descriptor, bytes_of(text))) fail_write(path);
}

void write_elements(const std::string& path, const PipelineElements& elements,
                    const std::string& fingerprint, int64_t threads) {
  ReplacingFile file(path);
  std::string offsets;
  uint64_t offset = 0;
  const int64_t size = elements.size().value();
  for (int64_t first = 0; first < size; first += written_at_a_time) {
    const int64_t count = std::min(written_at_a_time, size - first);
    std::vector<std::string> records(static_cast<size_t>(count));
    for_each_interval(count, threads, [&](std::span<const int64_t> interval) {
      std::vector<int64_t> numbers(interval.begin(), interval.end());
      for (int64_t& number : numbers) number += first;
      const std::vector<Examples> made = elements.get(numbers);
      for (size_t i = 0; i < made.size(); ++i) {
        records[static_cast<size_t>(interval[i])] = record_of(made[i]);
      }
    });
    for (const std::string& record : records) {
      put(offsets, offset);
      write(file.descriptor(), path, record);
      offset += record.size();
    }
  }
  put(offsets, offset);
  write(file.descriptor(), path, offsets);
  std::string end;
  put(end, static_cast<uint64_t>(size));
  put(end, offset);
  end += xxh128(bytes_of(offsets)) + fingerprint;
  end.resize(end_size - file_magic.size(), '\0');
  write(file.descriptor(), path, end += file_magic);
  file.commit();
}

/// An exclusive lock between processes, held until the end of the scope.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : file_(open_descriptor(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (!file_.valid() || !lock_descriptor(file_)) fail_write(path);
  }

 private:
  FileDescriptor file_;
};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

ElementFile::ElementFile(const std::string& path, const std::string& fingerprint,
                         const std::string& where)
    : path_(path), file_(open_descriptor(path, O_RDONLY | O_CLOEXEC)) {
  if (!file_.valid()) fail_read(path);
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0) fail_read(path);
  const auto size = static_cast<uint64_t>(info.st_size);
  const auto read_range = [&](uint64_t offset, uint64_t count) {
    std::vector<std::byte> bytes(count);
    const std::optional<size_t> read = read_at(file_.get(), offset, bytes);
    if (!read) fail_read(path);
    if (*read < count) fail_at(path, offset + *read, str(count - *read, " bytes more"), "the end");
    return bytes;
  };
  if (size < end_size) fail_at(path, 0, "a complete cache file", str(size, " bytes"));
  const uint64_t end_begin = size - end_size;
  const std::vector<std::byte> end = read_range(end_begin, end_size);
  const std::string text = text_of(end);
  if (!text.ends_with(file_magic)) {
    fail_at(path, size - file_magic.size(), "a complete cache file", "another ending");
  }
  ByteReader reader(end, path);
  const uint64_t count = reader.u64_little_endian("elements");
  const uint64_t begin = reader.u64_little_endian("the position of the offsets");
  const std::string sum = text_of(reader.take(digits, "checksum"));
  if (text_of(reader.take(digits, "fingerprint")) != fingerprint) {
    throw ConfigError(where, in_quotes(path) + " holds the elements of these data",
                      "those of other data or stages",
                      "delete it to have it written anew, or name another file");
  }
  if (begin > end_begin || (end_begin - begin) % 8 != 0 || (end_begin - begin) / 8 != count + 1) {
    fail_at(path, end_begin, str("offsets of ", count, " elements"), str("byte ", begin));
  }
  const std::vector<std::byte> offsets = read_range(begin, end_begin - begin);
  if (xxh128(offsets) != sum) fail_at(path, begin, "offsets of checksum " + sum, "others");
  ByteReader numbers(offsets, path);
  for (uint64_t i = 0; i <= count; ++i) {
    const uint64_t offset = numbers.u64_little_endian("offset");
    if (offset > begin || (i > 0 && offset < offsets_.back())) {
      fail_at(path, begin + 8 * i, "an offset behind the one before", std::to_string(offset));
    }
    offsets_.push_back(offset);
  }
}

Examples ElementFile::read(int64_t number) const {
  const uint64_t begin = offsets_[static_cast<size_t>(number)];
  std::vector<std::byte> bytes(offsets_[static_cast<size_t>(number) + 1] - begin);
  const std::optional<size_t> read = read_at(file_.get(), begin, bytes);
  if (!read) fail_read(path_);
  const std::span<const std::byte> all(bytes.data(), *read);
  const bool complete = *read == bytes.size() && *read >= digits;
  if (!complete || xxh128(all.subspan(digits)) != text_of(all.first(digits))) {
    fail_at(path_, begin, str("element ", number, " with its checksum"), "other bytes");
  }
  return element_of(all.subspan(digits), path_);
}

namespace {

/// Removes a file at the end of a scope.
struct RemovedAtEnd {
  const std::string& path;
  ~RemovedAtEnd() { ::unlink(path.c_str()); }
};

}  // namespace

std::shared_ptr<const ElementFile> element_file(const std::string& path,
                                                const PipelineElements& elements,
                                                const std::string& text, int64_t threads,
                                                const std::string& where) {
  const std::string fingerprint = fingerprint_of(elements, text);
  if (::access(path.c_str(), F_OK) != 0) {
    const std::string lock_path = path + ".lock";
    const FileLock lock(lock_path);
    // Also if the elements cannot be written, and while the lock is held.
    const RemovedAtEnd removed{lock_path};
    // Another process may have written it meanwhile.
    if (::access(path.c_str(), F_OK) != 0) write_elements(path, elements, fingerprint, threads);
  }
  return std::make_shared<ElementFile>(path, fingerprint, where);
}

}  // namespace tessera::detail
