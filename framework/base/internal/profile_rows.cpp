#include <algorithm>
#include <map>
#include <utility>

#include <tessera/framework/base/internal/profile_lane.hpp>

namespace tessera::detail {
namespace {

double seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

/// A row in nanoseconds: integer sums are exact.
struct Sums {
  SpanKind kind = SpanKind::op;
  int64_t calls = 0, total = 0, aten = 0, waiting = 0, overhead = 0, in_steps = 0, bytes = 0;
  int64_t gpu = 0;
  int64_t open = 0;  ///< number of its spans that are open
};

void spend(Sums& row, SpanKind kind, int64_t time) {
  if (kind == SpanKind::aten) {
    row.aten += time;
  } else if (kind == SpanKind::parallel || kind == SpanKind::wait) {
    row.waiting += time;
  } else {
    row.overhead += time;
  }
}

/// Sums up the spans of one thread after the other with a stack of open spans.
class Accountant {
 public:
  void add(const std::vector<SpanRecord>& spans) {
    for (const SpanRecord& span : spans) {
      while (open_.size() > span.depth) close();
      open(span);
    }
    while (!open_.empty()) close();
  }

  Accounts result() const;

 private:
  struct Open {
    Sums* row;           ///< row that its time counts for
    bool in_parent_row;  ///< whether `row` is the enclosing span's
    bool in_step;
    SpanKind kind;
    int64_t duration;
    int64_t own;  ///< duration without nested spans
  };

  /// Whether a span counts for the enclosing span's row: ATen's work and blocks on several threads
  /// always, collectives and waits inside a collective.
  bool counts_for_parent(SpanKind kind) const {
    if (open_.empty()) return false;
    if (kind == SpanKind::aten || kind == SpanKind::parallel) return true;
    const bool exchanges = kind == SpanKind::collective || kind == SpanKind::wait;
    return exchanges && open_.back().row->kind == SpanKind::collective;
  }

  void open(const SpanRecord& span) {
    const bool in_parent_row = counts_for_parent(span.kind);
    Sums& row = in_parent_row ? *open_.back().row : sums_[{span.kind, span.name}];
    const int64_t duration = span.end - span.begin;
    if (!in_parent_row) {
      row.kind = span.kind;
      row.bytes += span.bytes;
      ++row.calls;
      if (row.open++ == 0) {
        row.total += duration;
        row.gpu += span.gpu_time();
      }
    }
    const bool is_step = span.kind == SpanKind::step;
    const bool is_nested = !open_.empty() && open_.back().in_step;
    if (is_step && !is_nested) {
      ++steps_;
      step_time_ += duration;
      gpu_time_ += span.gpu_time();
    }
    if (!open_.empty()) open_.back().own -= duration;
    open_.push_back({&row, in_parent_row, is_nested || is_step, span.kind, duration, duration});
  }

  void close() {
    const Open span = open_.back();
    open_.pop_back();
    if (!span.in_parent_row) --span.row->open;
    spend(*span.row, span.kind, span.own);
    if (!span.in_step) return;
    spend(in_steps_, span.kind, span.own);
    span.row->in_steps += span.own;
  }

  std::map<std::pair<SpanKind, std::string_view>, Sums> sums_;
  std::vector<Open> open_;
  Sums in_steps_;
  int64_t steps_ = 0, step_time_ = 0, gpu_time_ = 0;
};

Accounts Accountant::result() const {
  Accounts accounts;
  accounts.totals = {.steps = steps_,
                     .time = seconds(step_time_),
                     .aten = seconds(in_steps_.aten),
                     .waiting = seconds(in_steps_.waiting),
                     .overhead = seconds(in_steps_.overhead),
                     .gpu = seconds(gpu_time_)};
  for (const auto& [key, sums] : sums_) {
    accounts.rows.push_back({.kind = sums.kind,
                             .name = std::string(key.second),
                             .calls = sums.calls,
                             .total = seconds(sums.total),
                             .aten = seconds(sums.aten),
                             .waiting = seconds(sums.waiting),
                             .overhead = seconds(sums.overhead),
                             .in_steps = seconds(sums.in_steps),
                             .gpu = seconds(sums.gpu),
                             .bytes = sums.bytes});
  }
  std::stable_sort(accounts.rows.begin(), accounts.rows.end(),
                   [](const auto& a, const auto& b) { return a.total > b.total; });
  return accounts;
}

}  // namespace

Accounts account(const std::vector<LaneSpans>& lanes) {
  Accountant accountant;
  for (const LaneSpans& lane : lanes) accountant.add(lane.spans);
  return accountant.result();
}

}  // namespace tessera::detail
