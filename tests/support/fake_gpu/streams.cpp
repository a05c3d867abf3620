#include "tests/support/fake_gpu/streams.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "tests/support/fake_gpu/memory.hpp"

namespace tessera::test::fake_gpu {

namespace {

struct Queue {
  std::deque<Work> work;
  uint64_t queued = 0;
  uint64_t done = 0;
};

struct Gpu {
  std::recursive_mutex mutex;
  std::array<Queue, stream_count> queues;
  size_t next_of_pool = 0;
};

Gpu& gpu(c10::DeviceIndex device) {
  static auto* const all = new std::array<Gpu, max_gpus>;
  return (*all)[static_cast<size_t>(device)];
}

Queue& queue_of(c10::Stream stream) {
  return gpu(stream.device_index()).queues[static_cast<size_t>(stream.id())];
}

c10::Stream stream_of(c10::DeviceIndex device, size_t id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kPrivateUse1, device),
                     static_cast<c10::StreamId>(id));
}

thread_local std::array<size_t, max_gpus> current{};

}  // namespace

std::recursive_mutex& lock_of(c10::DeviceIndex device) { return gpu(device).mutex; }

c10::Stream current_stream(c10::DeviceIndex device) {
  return stream_of(device, current[static_cast<size_t>(device)]);
}

c10::Stream exchange_stream(c10::Stream stream) {
  const c10::DeviceIndex device = stream.device_index();
  size_t& id = current[static_cast<size_t>(device)];
  return stream_of(device, std::exchange(id, static_cast<size_t>(stream.id())));
}

c10::Stream pool_stream(c10::DeviceIndex device) {
  const std::lock_guard lock(lock_of(device));
  return stream_of(device, 1 + gpu(device).next_of_pool++ % (stream_count - 1));
}

void* handle_of(c10::Stream stream) {
  // Never null, which is CUDA's default stream of any device.
  const auto id = static_cast<size_t>(stream.id());
  const auto device = static_cast<size_t>(stream.device_index());
  return reinterpret_cast<void*>((device + 1) * stream_count + id);
}

c10::Stream stream_of(const void* handle) {
  const auto number = reinterpret_cast<size_t>(handle);
  return stream_of(static_cast<c10::DeviceIndex>(number / stream_count - 1), number % stream_count);
}

uint64_t enqueue(c10::Stream stream, Work work) {
  const std::lock_guard lock(lock_of(stream.device_index()));
  Queue& queue = queue_of(stream);
  queue.work.push_back(std::move(work));
  return ++queue.queued;
}

uint64_t last_position(c10::Stream stream) {
  const std::lock_guard lock(lock_of(stream.device_index()));
  return queue_of(stream).queued;
}

bool is_done(c10::Stream stream, uint64_t position) {
  const std::lock_guard lock(lock_of(stream.device_index()));
  return queue_of(stream).done >= position;
}

bool advance(c10::Stream stream, uint64_t position) {
  const std::lock_guard lock(lock_of(stream.device_index()));
  Queue& queue = queue_of(stream);
  while (queue.done < position) {
    if (!queue.work.front()()) return false;
    ++queue.done;
    const Work over = std::move(queue.work.front());
    queue.work.pop_front();
  }
  return true;
}

void go_on(c10::Stream stream) {
  const std::lock_guard lock(lock_of(stream.device_index()));
  advance(stream, std::min(queue_of(stream).done + 1, queue_of(stream).queued));
}

void finish(c10::Stream stream, uint64_t position) {
  while (!advance(stream, position)) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void finish(c10::Stream stream) { finish(stream, last_position(stream)); }

void finish(c10::DeviceIndex device) {
  for (size_t id = 0; id < stream_count; ++id) finish(stream_of(device, id));
}

}  // namespace tessera::test::fake_gpu
