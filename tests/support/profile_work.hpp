#pragma once

#include <tessera/framework/base/profile.hpp>

#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <thread>

namespace tessera::test {

using namespace detail;

inline void pass_time() { std::this_thread::sleep_for(std::chrono::microseconds(100)); }

inline void work_on_a_block() {
  const ProfileSpan span(SpanKind::aten, "matmul");
  pass_time();
}

/// Runs an op that reduces its operand and runs its blocks on several threads; five spans.
inline void profiled_matmul() {
  const ProfileSpan op(SpanKind::op, "matmul");
  pass_time();
  {
    const ProfileSpan collective(SpanKind::collective, "all_reduce", 800);
    pass_time();
    const ProfileSpan sum(SpanKind::aten, "reduce");
    pass_time();
  }
  const ProfileSpan blocks(SpanKind::parallel, "blocks");
  work_on_a_block();
  pass_time();
}

/// Runs a step of two such ops; twelve spans.
inline void profiled_step() {
  const ProfileSpan step(SpanKind::step, "train");
  profiled_matmul();
  pass_time();
  profiled_matmul();
  const ProfileSpan wait(SpanKind::wait, "next batch");
  pass_time();
}

inline std::optional<Profile::Row> find_row(const Profile& profile, SpanKind kind,
                                            const std::string& name) {
  for (const Profile::Row& row : profile.rows()) {
    if (row.kind == kind && row.name == name) return row;
  }
  return std::nullopt;
}

/// Returns the row, or one without calls.
inline Profile::Row row_of(const Profile& profile, SpanKind kind, const std::string& name) {
  return find_row(profile, kind, name).value_or(Profile::Row{});
}

/// Whether two times are equal up to rounding from nanoseconds.
inline bool same_time(double a, double b) { return std::abs(a - b) < 1e-12 + 1e-9 * std::abs(a); }

}  // namespace tessera::test
