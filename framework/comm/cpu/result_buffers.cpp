#include <tessera/framework/comm/cpu/result_buffers.hpp>

#include <algorithm>
#include <cstdlib>
#include <new>

#include <ATen/ATen.h>

namespace tessera::detail {
namespace {

/// Less comes from the allocator's own store.
constexpr size_t least_bytes = size_t{1} << 18;
/// Of all blocks kept; a result beyond it comes from the allocator, too.
constexpr size_t max_bytes = size_t{256} << 20;
constexpr size_t alignment = 64;

}  // namespace

at::Tensor ResultBuffers::make(const Shape& shape, const at::TensorOptions& options) {
  const size_t bytes = static_cast<size_t>(numel(shape)) * options.dtype().itemsize();
  if (bytes < least_bytes) return at::empty(shape, options);
  const auto is_free = [](const Block& block) { return block.memory.use_count() == 1; };
  auto place = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return block.bytes == bytes && is_free(block);
  });
  if (place == blocks_.end()) {
    while (kept_bytes_ + bytes > max_bytes) {
      const auto unused = std::find_if(blocks_.begin(), blocks_.end(), is_free);
      if (unused == blocks_.end()) return at::empty(shape, options);
      kept_bytes_ -= unused->bytes;
      blocks_.erase(unused);
    }
    void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (!memory) throw std::bad_alloc();
    blocks_.push_back({std::shared_ptr<void>(memory, std::free), bytes});
    kept_bytes_ += bytes;
    place = blocks_.end() - 1;
  }
  return at::from_blob(
      place->memory.get(), shape, [held = place->memory](void*) {}, options);
}

}  // namespace tessera::detail
