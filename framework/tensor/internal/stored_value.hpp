#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tessera/framework/tensor/internal/deferred_value.hpp>
#include <tessera/framework/tensor/internal/memory_order.hpp>

namespace tessera::detail {

/// Bytes of a block outside of the memory of its device.
class BlockStore {
 public:
  virtual ~BlockStore() = default;
  virtual void read(std::span<std::byte> out) const = 0;
  virtual void write(std::span<const std::byte> bytes) = 0;
  /// Returns all bytes, not to be written to: of a file, a mapping, which takes no memory.
  virtual at::Tensor view() const = 0;
};

/// Returns a store of `bytes` bytes in `where`: "host", pinned memory for a GPU's blocks; or
/// "disk:FOLDER", a file that has no name, so that it is gone when the process ends in any way. Its
/// space is reserved, and its bytes do not stay in the page cache. Makes the folder. Throws
/// FileError naming it and the system's reason.
std::unique_ptr<BlockStore> make_block_store(const std::string& where, uint64_t bytes);

/// The blocks of a DTensor in BlockStores. They are read when anything but the tensor's shape,
/// dtype or layout is read; then they stay in memory.
struct StoredValue final : DeferredValue {
  /// Writes the blocks, in this order of memory. Returns an equal value.
  static DTensor store(const DTensor& value, const MemoryOrder& order, const std::string& where);
  /// Returns a value of unspecified elements.
  static std::shared_ptr<StoredValue> make(const ShardingPtr& sharding, const MemoryOrder& order,
                                           const std::string& where);
  /// Returns the stored blocks of a value; null if they are in memory.
  static std::shared_ptr<StoredValue> of(const DTensor& value);

  DTensor compute() const override;
  /// Returns the length of `bytes` in the functions below: memory of the host for all blocks, one
  /// after the other, each at a multiple of 64.
  int64_t staging_bytes() const;
  /// Returns the blocks as views of `bytes`.
  Blocks views(const at::Tensor& bytes) const;
  /// Returns a value of these views, or of copies on the GPUs that the blocks belong to.
  DTensor in(const at::Tensor& bytes) const;
  void read(const at::Tensor& bytes) const;
  void write(const at::Tensor& bytes);
  /// Returns a block for reading only.
  at::Tensor view(size_t block) const;

  ShardingPtr sharding;
  MemoryOrder order;
  std::vector<std::unique_ptr<BlockStore>> blocks;

 private:
  int64_t block_bytes(size_t block) const;
  at::Tensor typed(const at::Tensor& bytes, size_t block) const;
  std::span<std::byte> part(const at::Tensor& bytes, size_t block, int64_t& at) const;
};

}  // namespace tessera::detail
