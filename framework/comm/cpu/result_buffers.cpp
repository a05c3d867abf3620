#include <tessera/framework/comm/cpu/result_buffers.hpp>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include <ATen/ATen.h>

namespace tessera::detail {
namespace {

/// Smaller results come from ATen's allocator, which keeps small blocks itself.
constexpr size_t min_bytes = size_t{1} << 18;
/// Maximum size of all blocks; results beyond it come from ATen's allocator, too.
constexpr size_t max_bytes = size_t{256} << 20;
constexpr size_t alignment = 64;

void give_back_result(void* block) { delete static_cast<std::shared_ptr<void>*>(block); }

}  // namespace

at::Tensor ResultBuffers::make(const Shape& shape, const at::TensorOptions& options) {
  const size_t bytes = static_cast<size_t>(numel(shape)) * options.dtype().itemsize();
  if (bytes < min_bytes || !options.device().is_cpu()) return at::empty(shape, options);
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
  const Count count = count_;
  // Freeing it makes the block unused.
  auto kept = std::make_unique<std::shared_ptr<void>>(it->memory);
  c10::DataPtr memory(it->memory.get(), kept.release(), &give_back_result,
                      c10::Device(c10::DeviceType::CPU));
  const auto held =
      std::make_shared<c10::DataPtr>(count ? count(std::move(memory), bytes) : std::move(memory));
  return at::from_blob(
      held->get(), shape, [held](void*) {}, options);
}

}  // namespace tessera::detail
