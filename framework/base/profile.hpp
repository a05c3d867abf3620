#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// What a span of time in a profile was spent on. Spans nest: an op's contains the ATen calls on
/// its blocks, the relayouts of its operands and the collectives of those.
enum class SpanKind : uint8_t {
  step,        ///< a step of fit, evaluate or predict; contains the others
  op,          ///< an operation, all of it
  aten,        ///< ATen's work on one block of an operation
  parallel,    ///< blocks of an operation on several threads, until the last one is done
  collective,  ///< a collective, from its start to where it returned (begun, if asynchronous)
  wait,        ///< blocked on a collective, on the next batch or on another thread
  optimizer,   ///< the optimizer's step
  metrics,     ///< reading metrics
  data,        ///< cutting a batch over the devices; on the loader's thread: reading one
  callback,    ///< the callbacks
};

namespace detail {
struct Recording;
/// The number of the profile that records; 0: none.
extern std::atomic<uint64_t> current_profile;
/// False if nothing was recorded.
bool begin_span(uint64_t profile, SpanKind kind, std::string_view name, int64_t bytes) noexcept;
/// Ends the innermost one of this thread.
void end_span() noexcept;
/// A span from here to the end of the block, of this thread; nothing if no profile is taken.
class ProfileSpan {
 public:
  /// `name` has to live as long as the profile: a literal, an operation's name. `bytes` are those
  /// of one member of a collective, as CommEntry has them.
  explicit ProfileSpan(SpanKind kind, std::string_view name, int64_t bytes = 0) noexcept {
    const uint64_t profile = current_profile.load(std::memory_order_relaxed);
    recorded_ = profile != 0 && begin_span(profile, kind, name, bytes);
  }
  ~ProfileSpan() {
    if (recorded_) end_span();
  }
  ProfileSpan(const ProfileSpan&) = delete;
  ProfileSpan& operator=(const ProfileSpan&) = delete;

 private:
  bool recorded_ = false;
};

}  // namespace detail

/// The options of Profile.
struct ProfileOptions {
  /// Spans that are kept at most, of 56 bytes each; later ones are counted only.
  int64_t max_spans = 2'000'000;
};

/// Where the time of a program goes: spans of all threads, from here to stop() or its end. One at a
/// time. A program without a profile pays for a span with one load.
///
///     Profile profile;
///     model.fit(data, options);
///     profile.save("trace.json");
///     std::cout << profile.table();
///
/// Every instant of a thread counts once, for the innermost span. ATen's and `parallel` ones belong
/// to what contains them, as do collectives and waits inside a collective; all others have rows of
/// their own.
class Profile {
 public:
  /// Throws StateError if another one records.
  explicit Profile(const ProfileOptions& options = {});
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Whether one records.
  static bool is_taken() { return detail::current_profile.load(std::memory_order_relaxed) != 0; }

  /// Ends the recording; what goes on ends here for the profile.
  void stop();

  /// What was spent on one operation, collective or part of a step, in seconds. Without what has a
  /// row of its own, `aten`, `waiting` and `overhead` add up.
  struct Row {
    SpanKind kind = SpanKind::op;
    std::string name;
    int64_t calls = 0;
    double total = 0;     ///< from begin to end, with all that is inside
    double aten = 0;      ///< in ATen on the calling thread
    double waiting = 0;   ///< for other threads, processes or data
    double overhead = 0;  ///< the rest
    double in_steps = 0;  ///< what of aten, waiting and overhead was inside of steps
    double gpu = 0;       ///< on the first GPU, from begin to end, with what is inside; by events
    int64_t bytes = 0;
  };
  /// The rows by total time, the largest first. Rows of the kinds aten and parallel are of threads
  /// that helped.
  std::vector<Row> rows() const;

  /// What all steps together took, in seconds: `time` is the sum of aten, waiting and overhead.
  struct Totals {
    int64_t steps = 0;
    double time = 0, aten = 0, waiting = 0, overhead = 0;
    double gpu = 0;        ///< from the begins to the ends of steps on the first GPU
    double elapsed = 0;    ///< how long the whole profile took
    int64_t left_out = 0;  ///< spans beyond max_spans
  };
  Totals totals() const;

  /// rows() and totals() for people.
  std::string table() const;

  /// Chrome's trace events (Perfetto, chrome://tracing) as a JSON array, one lane a thread, times
  /// in microseconds. Written whole or not at all. Throws FileError.
  void save(const std::string& path) const;

 private:
  std::unique_ptr<detail::Recording> recording_;
};

/// "op", "collective", …
std::string_view to_string(SpanKind kind);

}  // namespace tessera
