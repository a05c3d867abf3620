#include <tessera/framework/comm/cpu/result_buffers.hpp>

#include <algorithm>
#include <cstdlib>
#include <new>

#include <ATen/ATen.h>

namespace tessera::detail {
namespace {

/// Smaller results come from ATen's allocator, which keeps small blocks itself.
constexpr size_t min_bytes = size_t{1} << 18;
/// Maximum size of all blocks; results beyond it come from ATen's allocator, too.
constexpr size_t max_bytes = size_t{256} << 20;
constexpr size_t alignment = 64;

}  // namespace

at::Tensor ResultBuffers::make(const Shape& shape, const at::TensorOptions& options) {
  const size_t bytes = static_cast<size_t>(numel(shape)) * options.dtype().itemsize();
  if (bytes < min_bytes) return at::empty(shape, options);
  const auto is_free = [](const Block& block) { return block.memory.use_count() == 1; };
  auto it = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return block.bytes == bytes && is_free(block);
  });
  if (it == blocks_.end()) {
    while (cached_bytes_ + bytes > max_bytes) {
      const auto unused = std::find_if(blocks_.begin(), blocks_.end(), is_free);
      if (unused == blocks_.end()) return at::empty(shape, options);
      cached_bytes_ -= unused->bytes;
      blocks_.erase(unused);
    }
    void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (!memory) throw std::bad_alloc();
    blocks_.push_back({std::shared_ptr<void>(memory, std::free), bytes});
    cached_bytes_ += bytes;
    it = blocks_.end() - 1;
  }
  return at::from_blob(
      it->memory.get(), shape, [keep_alive = it->memory](void*) {}, options);
}

}  // namespace tessera::detail
