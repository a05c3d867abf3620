#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Stream.h>

#include "tests/support/fake_gpu/streams.hpp"

namespace tessera::test::fake_gpu {

/// The work queued on a GPU's streams while they record, in order, and the memory allocated for it,
/// which is freed with the recording.
struct Recording {
  explicit Recording(c10::Stream stream);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  struct Step {
    const char* op;
    std::function<void()> run;
  };

  const c10::Stream origin;
  const uint64_t pool;  ///< pool of its memory
  std::vector<Step> steps;
  std::vector<const void*> pinned;  ///< host addresses that steps read or write
  std::string refused;              ///< the first operation that could not be recorded
  bool ended = false;
};

/// Makes a stream record, and all streams that wait for it. Throws StateError for a default stream,
/// and if it or this thread already records.
std::shared_ptr<Recording> begin_recording(c10::Stream stream);
/// Ends the recording of all its streams. Throws StateError if something could not be recorded, or
/// work of a stream was not waited for.
void end_recording(Recording& recording);
/// Ends the recording without checks.
void give_up(Recording& recording);
/// Queues an ended recording on a stream. Throws StateError if pinned memory that it needs was
/// freed.
void replay(const std::shared_ptr<Recording>& recording, c10::Stream stream);

bool records(c10::Stream stream);
/// Returns the pool for a stream's allocations; 0 if it does not record.
uint64_t pool_of(c10::Stream stream);
/// Appends work to a stream's recording; `pinned` is host memory that it needs, `op` is kept by
/// address.
void keep(c10::Stream stream, const char* op, std::function<void()> work,
          const void* pinned = nullptr);

/// A position in a recording, as events store it: what each stream had recorded.
struct Mark {
  std::weak_ptr<Recording> recording;
  std::array<uint64_t, stream_count> seen{};
};
/// Returns a recording stream's current position.
std::optional<Mark> mark_of(c10::Stream stream);
/// Orders a stream after an event's position. Returns false if neither is part of a recording.
/// Throws StateError if only one of them is.
bool goes_behind(c10::Stream stream, const std::optional<Mark>& mark);

/// Throws StateError if this thread records.
void refuse_while_recording(const std::string& op);
/// Throws StateError if the stream records.
void refuse_on_recording(c10::Stream stream, const std::string& op);
/// Throws StateError if the event is part of a recording.
void refuse_mark(const std::optional<Mark>& mark, const std::string& op);

}  // namespace tessera::test::fake_gpu
