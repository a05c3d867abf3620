#include "tests/support/fake_gpu/recording.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/fake_gpu/counters.hpp"
#include "tests/support/fake_gpu/memory.hpp"
#include "tests/support/fake_gpu/pinned_memory.hpp"

namespace tessera::test::fake_gpu {

using detail::str;

namespace {

/// A stream's state in a recording.
struct Recorder {
  std::shared_ptr<Recording> recording;  ///< null if it is not recording
  Mark position;
};

using Recorders = std::array<Recorder, stream_count>;

/// Returns the recorders of a GPU. Call under its lock.
Recorders& recorders(c10::DeviceIndex device) {
  static auto* const all = new std::array<Recorders, max_gpus>;
  return (*all)[static_cast<size_t>(device)];
}

Recorder& recorder(c10::Stream stream) {
  return recorders(stream.device_index())[static_cast<size_t>(stream.id())];
}

/// The recording that this thread began and has not ended.
thread_local std::weak_ptr<Recording> begun;

uint64_t next_pool() {
  static std::atomic<uint64_t> made = 0;
  return ++made;
}

[[noreturn]] void refuse(Recording* recording, const std::string& op, const std::string& received) {
  if (recording && recording->refused.empty()) recording->refused = op + ": " + received;
  throw StateError(op, "what is done while a GPU records is something that it can repeat alone",
                   received, "do it before or after the recording");
}

/// Describes work of a stream that the recording's first stream has not waited for; "" if there is
/// none.
std::string unjoined(const Recording& recording) {
  const Recorders& all = recorders(recording.origin.device_index());
  const Mark& origin = all[static_cast<size_t>(recording.origin.id())].position;
  for (size_t id = 0; id < stream_count; ++id) {
    if (all[id].recording.get() == &recording && all[id].position.seen[id] > origin.seen[id]) {
      return str("work of stream ", id, " that stream ", recording.origin.id(),
                 " does not wait for");
    }
  }
  return "";
}

}  // namespace

Recording::Recording(c10::Stream stream) : origin(stream), pool(next_pool()) {}
Recording::~Recording() { release_pool(origin.device_index(), pool); }

std::shared_ptr<Recording> begin_recording(c10::Stream stream) {
  const std::lock_guard lock(lock_of(stream.device_index()));
  if (stream.id() == 0) refuse(nullptr, "GpuGraph", "a default stream");
  refuse_on_recording(stream, "GpuGraph");
  refuse_while_recording("GpuGraph");
  const auto recording = std::make_shared<Recording>(stream);
  recorder(stream) = {recording, {recording, {}}};
  begun = recording;
  return recording;
}

void give_up(Recording& recording) {
  const std::lock_guard lock(lock_of(recording.origin.device_index()));
  for (Recorder& one : recorders(recording.origin.device_index())) {
    if (one.recording.get() == &recording) one = {};
  }
  if (begun.lock().get() == &recording) begun.reset();
}

void end_recording(Recording& recording) {
  const std::lock_guard lock(lock_of(recording.origin.device_index()));
  if (recording.refused.empty()) recording.refused = unjoined(recording);
  give_up(recording);
  if (!recording.refused.empty()) {
    throw StateError("GpuGraph", "all that was done meanwhile could be recorded", recording.refused,
                     "");
  }
  recording.ended = true;
}

void replay(const std::shared_ptr<Recording>& recording, c10::Stream stream) {
  if (!recording->ended) {
    throw StateError("GpuGraph", "a graph is replayed after its capture has ended",
                     "the capture has not ended, or it failed", "call end() first");
  }
  refuse_on_recording(stream, "GpuGraph");
  std::vector<std::shared_ptr<const void>> held;
  for (const void* address : recording->pinned) {
    held.push_back(hold_pinned(address));
    if (held.back()) continue;
    throw StateError("GpuGraph", "pinned memory that a graph copies lives as long as the graph",
                     "some was given back", "keep its tensors");
  }
  ++counts().graphs;
  enqueue(stream, [recording, held] {
    const c10::InferenceMode inference;
    for (const Recording::Step& step : recording->steps) {
      set_last_op(step.op);
      step.run();
    }
    return true;
  });
}

bool records(c10::Stream stream) { return pool_of(stream) != 0; }

uint64_t pool_of(c10::Stream stream) {
  const std::lock_guard lock(lock_of(stream.device_index()));
  const Recording* const recording = recorder(stream).recording.get();
  return recording ? recording->pool : 0;
}

void keep(c10::Stream stream, const char* op, std::function<void()> work, const void* pinned) {
  const std::lock_guard lock(lock_of(stream.device_index()));
  Recorder& at = recorder(stream);
  at.recording->steps.push_back({op, std::move(work)});
  if (pinned) at.recording->pinned.push_back(pinned);
  at.position.seen[static_cast<size_t>(stream.id())] = at.recording->steps.size();
}

std::optional<Mark> mark_of(c10::Stream stream) {
  const std::lock_guard lock(lock_of(stream.device_index()));
  const Recorder& at = recorder(stream);
  return at.recording ? std::optional(at.position) : std::nullopt;
}

bool goes_behind(c10::Stream stream, const std::optional<Mark>& mark) {
  const std::lock_guard lock(lock_of(stream.device_index()));
  Recorder& waits = recorder(stream);
  if (!mark && !waits.recording) return false;
  const auto recording = mark ? mark->recording.lock() : nullptr;
  const bool is_open = recording && recording->refused.empty() && !recording->ended;
  if (!mark) refuse(waits.recording.get(), "event", "an event of a stream that is not recorded");
  if (!is_open || (waits.recording && waits.recording != recording) ||
      recording->origin.device_index() != stream.device_index()) {
    refuse(waits.recording.get(), "event", "an event of another recording");
  }
  waits.recording = recording;
  waits.position.recording = recording;
  for (size_t id = 0; id < stream_count; ++id) {
    waits.position.seen[id] = std::max(waits.position.seen[id], mark->seen[id]);
  }
  return true;
}

void refuse_while_recording(const std::string& op) {
  if (const auto recording = begun.lock()) refuse(recording.get(), op, "the host waits or asks");
}

void refuse_on_recording(c10::Stream stream, const std::string& op) {
  const std::lock_guard lock(lock_of(stream.device_index()));
  Recording* const recording = recorder(stream).recording.get();
  if (recording) refuse(recording, op, "the stream records");
}

void refuse_mark(const std::optional<Mark>& mark, const std::string& op) {
  if (mark) refuse(mark->recording.lock().get(), op, "an event that was recorded");
}

}  // namespace tessera::test::fake_gpu
