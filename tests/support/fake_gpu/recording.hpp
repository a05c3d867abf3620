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

/// What streams of a GPU were given while they recorded, in that order, and the memory that they
/// asked for, which is given back with it.
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
  const uint64_t pool;  ///< of its memory
  std::vector<Step> steps;
  std::vector<const void*> pinned;  ///< addresses of the host that steps read or write
  std::string refused;              ///< what could not be recorded
  bool ended = false;
};

/// Makes a stream record, and streams that come to wait for it. Throws StateError for a default
/// stream, and where it or this thread records.
std::shared_ptr<Recording> begin_recording(c10::Stream stream);
/// Makes them go on as before. Throws StateError where something could not be recorded, or work of
/// a stream was not waited for.
void end_recording(Recording& recording);
/// The same whatever was recorded.
void give_up(Recording& recording);
/// Puts a recording that ended behind what a stream has to do. Throws StateError where pinned
/// memory that it needs was given back.
void replay(const std::shared_ptr<Recording>& recording, c10::Stream stream);

bool records(c10::Stream stream);
/// The pool that memory for a stream comes from; 0 where it does not record.
uint64_t pool_of(c10::Stream stream);
/// Keeps a piece of work that a recording stream was given; `pinned` is the memory of the host that
/// it needs, `op` is kept by its address.
void keep(c10::Stream stream, const char* op, std::function<void()> work,
          const void* pinned = nullptr);

/// A place in a recording, as events have it: what each stream had recorded.
struct Mark {
  std::weak_ptr<Recording> recording;
  std::array<uint64_t, stream_count> seen{};
};
/// The place that a recording stream has come to.
std::optional<Mark> mark_of(c10::Stream stream);
/// Makes a stream go on behind an event's place. False where neither is of a recording. Throws
/// StateError where only one of them is.
bool goes_behind(c10::Stream stream, const std::optional<Mark>& mark);

/// Throws StateError where this thread records.
void refuse_while_recording(const std::string& op);
/// Throws StateError where the stream records.
void refuse_on_recording(c10::Stream stream, const std::string& op);
/// Throws StateError for an event that was recorded.
void refuse_mark(const std::optional<Mark>& mark, const std::string& op);

}  // namespace tessera::test::fake_gpu
