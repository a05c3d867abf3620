#include <tessera/framework/tensor/internal/stored_value.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

namespace tessera::detail {
namespace {

constexpr std::string_view disk_prefix = "disk:";
constexpr int64_t block_alignment = 64;

/// Opens a file without a name, of which nothing is left when the process ends, however it does.
int open_unnamed(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  // The file system has only files with names.
  std::string path = folder + "/slots-XXXXXX";
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(path.c_str());
  return named;
}

class BlockFile final : public BlockStore {
 public:
  BlockFile(std::string folder, uint64_t bytes) : folder_(std::move(folder)), bytes_(bytes) {
    if (!make_folders(folder_)) fail("the folder can be made", errno);
    file_ = std::make_shared<FileDescriptor>(open_unnamed(folder_));
    if (!file_->valid()) fail("the folder must be writable", errno);
    if (bytes == 0) return;
    const int reason = ::posix_fallocate(file_->get(), 0, static_cast<off_t>(bytes));
    if (reason != 0) fail(str("there is space for ", bytes, " bytes"), reason);
  }

  void read(std::span<std::byte> out) const override {
    const std::optional<size_t> count = read_at(file_->get(), 0, out);
    if (count != out.size()) fail("what was written there can be read", count ? EIO : errno);
    forget(*file_);
  }

  void write(std::span<const std::byte> bytes) override {
    if (!write_all_at(file_->get(), 0, bytes)) fail("the folder must be writable", errno);
    constexpr unsigned flags =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    // Only written pages can be dropped. File systems without disks have none to write.
    if (::sync_file_range(file_->get(), 0, 0, flags) != 0 && errno != ESPIPE && errno != EINVAL) {
      fail("what is written gets to the disk", errno);
    }
    forget(*file_);
  }

  at::Tensor view() const override {
    const auto size = static_cast<int64_t>(bytes_);
    if (size == 0) return at::empty({0}, at::kByte);
    void* const memory = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file_->get(), 0);
    if (memory == MAP_FAILED) fail("what was written there can be read", errno);
    const auto unmap = [file = file_, bytes = bytes_](void* begin) {
      ::munmap(begin, bytes);
      forget(*file);
    };
    return at::from_blob(memory, {size}, unmap, at::kByte);
  }

 private:
  /// Drops the file's pages from the page cache.
  static void forget(const FileDescriptor& file) {
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }

  [[noreturn]] void fail(const std::string& expected, int reason) const {
    throw FileError(folder_, "slots rest here: " + expected, std::strerror(reason),
                    "make space, or name another folder in \"memory\"");
  }

  std::string folder_;
  uint64_t bytes_;
  std::shared_ptr<FileDescriptor> file_;
};

class HostBlock final : public BlockStore {
 public:
  explicit HostBlock(uint64_t bytes)
      : memory_(at::empty({static_cast<int64_t>(bytes)},
                          at::TensorOptions(at::kByte).pinned_memory(at::hasCUDA()))) {}
  void read(std::span<std::byte> out) const override {
    std::memcpy(out.data(), memory_.const_data_ptr(), out.size());
  }
  void write(std::span<const std::byte> bytes) override {
    std::memcpy(memory_.mutable_data_ptr(), bytes.data(), bytes.size());
  }
  at::Tensor view() const override { return memory_; }

 private:
  at::Tensor memory_;
};

}  // namespace

std::unique_ptr<BlockStore> make_block_store(const std::string& where, uint64_t bytes) {
  if (where == "host") return std::make_unique<HostBlock>(bytes);
  return std::make_unique<BlockFile>(where.substr(disk_prefix.size()), bytes);
}

std::shared_ptr<StoredValue> StoredValue::make(const ShardingPtr& sharding,
                                               const MemoryOrder& order, const std::string& where) {
  auto stored = std::make_shared<StoredValue>();
  stored->sharding = sharding;
  stored->order = order;
  for (size_t b = 0; b < sharding->blocks.size(); ++b) {
    const auto bytes = static_cast<uint64_t>(stored->block_bytes(b));
    stored->blocks.push_back(make_block_store(where, bytes));
  }
  return stored;
}

DTensor StoredValue::store(const DTensor& value, const MemoryOrder& order,
                           const std::string& where) {
  const std::shared_ptr<StoredValue> stored = make(value.sharding(), order, where);
  for (size_t b = 0; b < stored->blocks.size(); ++b) {
    at::Tensor block = value.blocks()[b].cpu();
    if (!is_in_order(block, order)) block = copy_in_order(block, order);
    stored->blocks[b]->write(
        {static_cast<const std::byte*>(block.const_data_ptr()), block.nbytes()});
  }
  return DeferredValue::make(stored->sharding, stored);
}

std::shared_ptr<StoredValue> StoredValue::of(const DTensor& value) {
  return std::const_pointer_cast<StoredValue>(
      std::dynamic_pointer_cast<const StoredValue>(DeferredValue::shared(value)));
}

DTensor StoredValue::compute() const {
  const at::Tensor bytes = at::empty({staging_bytes()}, at::kByte);
  read(bytes);
  return in(bytes);
}

int64_t StoredValue::block_bytes(size_t block) const {
  return numel(extents(sharding->blocks[block].intervals)) *
         static_cast<int64_t>(c10::elementSize(sharding->dtype));
}

int64_t StoredValue::staging_bytes() const {
  int64_t bytes = 0;
  for (size_t b = 0; b < blocks.size(); ++b) {
    bytes += (block_bytes(b) + block_alignment - 1) / block_alignment * block_alignment;
  }
  return bytes;
}

std::span<std::byte> StoredValue::part(const at::Tensor& bytes, size_t block, int64_t& at) const {
  const int64_t begin = at, size = block_bytes(block);
  at += (size + block_alignment - 1) / block_alignment * block_alignment;
  return {static_cast<std::byte*>(bytes.data_ptr()) + begin, static_cast<size_t>(size)};
}

at::Tensor StoredValue::typed(const at::Tensor& bytes, size_t block) const {
  const Shape shape = extents(sharding->blocks[block].intervals);
  return view_in_order(bytes.view(sharding->dtype), shape, order);
}

Blocks StoredValue::views(const at::Tensor& bytes) const {
  Blocks tensors;
  int64_t begin = 0;
  for (size_t b = 0; b < blocks.size(); ++b) {
    const int64_t size = block_bytes(b);
    tensors.push_back(typed(bytes.narrow(0, begin, size), b));
    begin += (size + block_alignment - 1) / block_alignment * block_alignment;
  }
  return tensors;
}

DTensor StoredValue::in(const at::Tensor& bytes) const {
  Blocks tensors = views(bytes);
  for (size_t b = 0; b < tensors.size(); ++b) {
    const c10::Device device = block_device(sharding->mesh(), sharding->blocks[b]);
    const DeviceMemory::For memory(sharding->blocks[b].devices.front());
    if (!device.is_cpu()) tensors[b] = tensors[b].to(device);
  }
  return DTensor(sharding, std::move(tensors));
}

void StoredValue::read(const at::Tensor& bytes) const {
  int64_t at = 0;
  for (size_t b = 0; b < blocks.size(); ++b) blocks[b]->read(part(bytes, b, at));
}

void StoredValue::write(const at::Tensor& bytes) {
  int64_t at = 0;
  for (size_t b = 0; b < blocks.size(); ++b) blocks[b]->write(part(bytes, b, at));
}

at::Tensor StoredValue::view(size_t block) const { return typed(blocks[block]->view(), block); }

}  // namespace tessera::detail
