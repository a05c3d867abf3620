#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// Kind of work that a span of a profile was spent on. Spans nest: an op's span contains the ATen
/// calls on its blocks, the relayouts of its operands and their collectives.
enum class SpanKind : uint8_t {
  step,        ///< a step of fit, evaluate or predict; contains the others
  op,          ///< a complete operation
  aten,        ///< ATen's work on one block of an operation
  parallel,    ///< blocks of an operation on several threads, until the last one is done
  collective,  ///< a collective, from call to return (asynchronous: only its start)
  wait,        ///< blocked on a collective, on the next batch or on another thread
  optimizer,   ///< the optimizer's step
  metrics,     ///< reading metrics
  data,        ///< sharding a batch over the devices; on the loader's thread: reading one
  callback,    ///< the callbacks
};

namespace detail {
struct Recording;
/// Number of the profile that is recording; 0: none.
extern std::atomic<uint64_t> current_profile;
/// Begins a span on this thread. Returns false if nothing was recorded.
bool begin_span(uint64_t profile, SpanKind kind, std::string_view name, int64_t bytes) noexcept;
/// Ends this thread's innermost span.
void end_span() noexcept;
/// Records a span of this thread for the duration of a scope; does nothing without a profile.
class ProfileSpan {
 public:
  /// `name` must outlive the profile: a literal, an operation's name. `bytes`: bytes per member of
  /// a collective, as in CommEntry.
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
  /// maximum number of spans kept, 56 bytes each; later ones are only counted
  int64_t max_spans = 2'000'000;
};

/// Records spans of all threads from its construction to stop() or its destruction. Only one
/// profile may record at a time. Without one a span costs a single load.
///
///     Profile profile;
///     model.fit(data, options);
///     profile.save("trace.json");
///     std::cout << profile.table();
///
/// Every instant of a thread counts once, for the innermost span. The time of `aten` and `parallel`
/// spans, and of collectives and waits inside a collective, belongs to the enclosing span's row;
/// all other spans have their own rows.
class Profile {
 public:
  /// Throws StateError if another profile is recording.
  explicit Profile(const ProfileOptions& options = {});
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Whether a profile is recording.
  static bool is_taken() { return detail::current_profile.load(std::memory_order_relaxed) != 0; }

  /// Ends the recording, and with it all open spans.
  void stop();

  /// Time spent on one operation, collective or part of a step, in seconds. `aten`, `waiting` and
  /// `overhead` add up to `total` without nested spans that have their own row.
  struct Row {
    SpanKind kind = SpanKind::op;
    std::string name;
    int64_t calls = 0;
    double total = 0;     ///< from begin to end, including nested spans
    double aten = 0;      ///< in ATen on the calling thread
    double waiting = 0;   ///< for other threads, processes or data
    double overhead = 0;  ///< the rest
    double in_steps = 0;  ///< the part of aten + waiting + overhead inside steps
    double gpu = 0;       ///< on the first GPU, including nested spans; measured by events
    int64_t bytes = 0;
  };
  /// Returns the rows in descending order of total time. Rows of kind `aten` and `parallel` are the
  /// work of helper threads.
  std::vector<Row> rows() const;

  /// Time of all steps together, in seconds: `time` = aten + waiting + overhead.
  struct Totals {
    int64_t steps = 0;
    double time = 0, aten = 0, waiting = 0, overhead = 0;
    double gpu = 0;        ///< from begin to end of each step on the first GPU
    double elapsed = 0;    ///< duration of the profile
    int64_t left_out = 0;  ///< spans beyond max_spans
  };
  Totals totals() const;

  /// Returns rows() and totals() as a human-readable table.
  std::string table() const;

  /// Writes Chrome trace events (Perfetto, chrome://tracing) as a JSON array, one lane per thread,
  /// times in microseconds of the machine's steady clock: `jq -s add` of several processes' files
  /// is a trace of all of them. The file is replaced atomically. Throws FileError.
  void save(const std::string& path) const;

 private:
  std::unique_ptr<detail::Recording> recording_;
};

/// "op", "collective", …
std::string_view to_string(SpanKind kind);

}  // namespace tessera
