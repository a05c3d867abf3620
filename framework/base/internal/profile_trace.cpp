#include <errno.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>

#include <map>
#include <optional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/profile_lane.hpp>
#include <tessera/framework/base/json.hpp>

namespace tessera::detail {
namespace {

/// Returns a name as a JSON string; invalid UTF-8 is replaced.
std::string quoted(std::string_view name) {
  return Json(name).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Formats nanoseconds as microseconds without rounding.
std::string microseconds(int64_t nanoseconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%" PRId64 ".%03" PRId64, nanoseconds / 1000,
                nanoseconds % 1000);
  return text;
}

class TraceText {
 public:
  explicit TraceText(std::chrono::steady_clock::time_point start)
      : start_(std::chrono::nanoseconds(start.time_since_epoch()).count()) {
    add(str(R"({"ph":"M","name":"process_name","pid":)", pid_, R"(,"args":{"name":)",
            quoted(program_invocation_short_name), "}}"));
  }

  void add_lane(size_t number, const LaneSpans& lane) {
    const std::string ids = str(R"(,"pid":)", pid_, R"(,"tid":)", number);
    add(str(R"({"ph":"M","name":"thread_name")", ids, R"(,"args":{"name":)", quoted(lane.name),
            "}}"));
    add(str(R"({"ph":"M","name":"thread_sort_index")", ids, R"(,"args":{"sort_index":)", number,
            "}}"));
    for (const SpanRecord& span : lane.spans) add_span(span, ids);
  }

  /// Adds a lane with all threads' spans at their GPU times. The first GPU mark is aligned with the
  /// host time at which it was made.
  void add_gpu(size_t number, const std::vector<LaneSpans>& lanes) {
    LaneSpans gpu{"GPU", {}};
    std::optional<int64_t> start;
    for (const LaneSpans& lane : lanes) {
      for (const SpanRecord& span : lane.spans) {
        if (!span.on_gpu()) continue;
        if (span.gpu_begin == 0) start = span.begin;
        gpu.spans.push_back(span);
      }
    }
    if (!start) return;
    for (SpanRecord& span : gpu.spans) {
      span.begin = *start + span.gpu_begin;
      span.end = *start + span.gpu_end;
    }
    add_lane(number, gpu);
  }

  void add_end(int64_t at, const std::string& text) {
    add(str(R"({"ph":"i","s":"g","name":)", quoted(text), R"(,"ts":)", microseconds(start_ + at),
            R"(,"pid":)", pid_, R"(,"tid":1})"));
  }

  std::string finish() { return std::move(text_) + "\n]\n"; }

 private:
  void add_span(const SpanRecord& span, const std::string& ids) {
    std::string event = R"({"ph":"X","name":)" + quoted_once(span.name);
    event += R"(,"cat":")" + std::string(to_string(span.kind)) + R"(","ts":)";
    event += microseconds(start_ + span.begin) + R"(,"dur":)" + microseconds(span.end - span.begin);
    event += ids + R"(,"args":{"kind":")" + std::string(to_string(span.kind)) + '"';
    if (span.bytes > 0) event += R"(,"bytes":)" + std::to_string(span.bytes);
    add(event + "}}");
  }

  const std::string& quoted_once(std::string_view name) {
    std::string& known = names_[name];
    if (known.empty()) known = quoted(name);
    return known;
  }

  void add(const std::string& event) {
    text_ += text_.empty() ? "[\n" : ",\n";
    text_ += event;
  }

  const int pid_ = static_cast<int>(::getpid());
  const int64_t start_;  ///< when the profile began
  std::map<std::string_view, std::string> names_;
  std::string text_;
};

}  // namespace

std::string trace_text(const std::vector<LaneSpans>& lanes,
                       std::chrono::steady_clock::time_point start, int64_t left_out, int64_t end) {
  TraceText text(start);
  for (size_t i = 0; i < lanes.size(); ++i) text.add_lane(i + 1, lanes[i]);
  text.add_gpu(lanes.size() + 1, lanes);
  if (left_out > 0) text.add_end(end, str("full: ", left_out, " later spans are left out"));
  return text.finish();
}

}  // namespace tessera::detail
