#include <tessera/framework/base/profile.hpp>

#include <algorithm>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/profile_work.hpp"

namespace profile_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// Returns a row's own time, without nested spans.
double own(const Profile::Row& row) { return row.aten + row.waiting + row.overhead; }

}  // namespace

TEST_CASE("spans outside a profile are in none") {
  CHECK(!Profile::is_taken());
  test::profiled_matmul();
  const Profile profile;
  CHECK(Profile::is_taken());
  CHECK(profile.rows().empty());
}

TEST_CASE("an op has ATen's time, waiting and overhead; nested ops have their own rows") {
  Profile profile;
  test::profiled_matmul();
  profile.stop();
  const Profile::Row op = test::row_of(profile, SpanKind::op, "matmul");
  const Profile::Row sum = test::row_of(profile, SpanKind::collective, "all_reduce");
  CHECK(profile.rows().size() == 2);
  CHECK(op.calls == 1);
  CHECK(op.bytes == 0);
  CHECK(op.aten > 0);
  CHECK(op.waiting > 0);
  CHECK(op.overhead > 0);
  CHECK(sum.calls == 1);
  CHECK(sum.bytes == 800);
  CHECK(sum.aten > 0);
  CHECK(sum.overhead > 0);
  CHECK(sum.waiting == 0);
  CHECK(test::same_time(sum.total, own(sum)));
  CHECK(test::same_time(op.total, own(op) + sum.total));
  CHECK(op.in_steps == 0);
}

TEST_CASE("the rows' own times add up to the steps' time") {
  Profile profile;
  for (int i = 0; i < 3; ++i) test::profiled_step();
  test::profiled_matmul();
  profile.stop();
  const Profile::Totals all = profile.totals();
  CHECK(all.steps == 3);
  CHECK(all.left_out == 0);
  double in_steps = 0;
  for (const Profile::Row& row : profile.rows()) in_steps += row.in_steps;
  CHECK(test::same_time(all.time, in_steps));
  CHECK(test::same_time(all.time, all.aten + all.waiting + all.overhead));
  const Profile::Row step = test::row_of(profile, SpanKind::step, "train");
  CHECK(test::same_time(all.time, step.total));
  CHECK(step.calls == 3);
  CHECK(test::same_time(own(step), step.in_steps));
  const Profile::Row op = test::row_of(profile, SpanKind::op, "matmul");
  CHECK(op.calls == 7);
  CHECK(op.in_steps < own(op));
  const Profile::Row wait = test::row_of(profile, SpanKind::wait, "next batch");
  CHECK(wait.waiting > 0);
  CHECK(test::same_time(wait.waiting, wait.total));
  CHECK(all.elapsed >= all.time);
  const std::vector<Profile::Row> rows = profile.rows();
  CHECK(std::is_sorted(rows.begin(), rows.end(),
                       [](const auto& a, const auto& b) { return a.total > b.total; }));
}

TEST_CASE("a step inside a step is not counted as a step") {
  Profile profile;
  {
    const ProfileSpan train(SpanKind::step, "train");
    const ProfileSpan test(SpanKind::step, "test");
    test::pass_time();
  }
  profile.stop();
  CHECK(profile.totals().steps == 1);
  CHECK(
      test::same_time(profile.totals().time, test::row_of(profile, SpanKind::step, "train").total));
}

TEST_CASE("collectives and waits inside a collective are part of it") {
  Profile profile;
  {
    const ProfileSpan exchange(SpanKind::collective, "status");
    {
      const ProfileSpan sum(SpanKind::collective, "all_reduce", 56);
      test::pass_time();
    }
    const ProfileSpan wait(SpanKind::wait, "all_reduce");
    test::pass_time();
  }
  profile.stop();
  REQUIRE(profile.rows().size() == 1);
  const Profile::Row row = profile.rows()[0];
  CHECK(row.name == "status");
  CHECK(row.calls == 1);
  CHECK(row.bytes == 0);
  CHECK(row.waiting > 0);
  CHECK(test::same_time(row.total, own(row)));
}

TEST_CASE("an op inside an op of its name counts as two calls, its time once") {
  Profile profile;
  {
    const ProfileSpan outer(SpanKind::op, "add");
    test::pass_time();
    const ProfileSpan inner(SpanKind::op, "add");
    test::pass_time();
  }
  profile.stop();
  REQUIRE(profile.rows().size() == 1);
  const Profile::Row row = profile.rows()[0];
  CHECK(row.calls == 2);
  CHECK(test::same_time(row.total, row.overhead));
}

TEST_CASE("each thread has a lane, also if it ends before the profile") {
  Profile profile;
  test::profiled_matmul();
  std::thread(test::work_on_a_block).join();
  std::thread([] {
    const ProfileSpan span(SpanKind::data, "read batch");
    test::pass_time();
  }).join();
  profile.stop();
  CHECK(test::row_of(profile, SpanKind::aten, "matmul").calls == 1);
  CHECK(test::row_of(profile, SpanKind::data, "read batch").calls == 1);
  CHECK(test::row_of(profile, SpanKind::op, "matmul").calls == 1);
}

TEST_CASE("rows can be read while many threads record spans") {
  constexpr int threads = 4, spans = 2000;
  Profile profile;
  std::vector<std::jthread> list;
  for (int t = 0; t < threads; ++t) {
    list.emplace_back([] {
      for (int i = 0; i < spans; ++i) {
        const ProfileSpan op(SpanKind::op, "add");
        const ProfileSpan work(SpanKind::aten, "add");
      }
    });
  }
  for (int i = 0; i < 10; ++i) profile.rows();
  list.clear();
  profile.stop();
  CHECK(test::row_of(profile, SpanKind::op, "add").calls == threads * spans);
}

TEST_CASE("a span that is open when the profile begins is not in it") {
  std::optional<Profile> profile;
  {
    const ProfileSpan before(SpanKind::op, "before");
    profile.emplace();
    const ProfileSpan inside(SpanKind::op, "inside");
  }
  profile->stop();
  CHECK(profile->rows().size() == 1);
  CHECK(test::row_of(*profile, SpanKind::op, "inside").calls == 1);
}

TEST_CASE("a span that is open when the profile ends is cut off there") {
  Profile profile;
  std::optional<Profile::Row> at_end;
  {
    const ProfileSpan open(SpanKind::op, "open");
    test::pass_time();
    CHECK(test::row_of(profile, SpanKind::op, "open").total > 0);
    profile.stop();
    CHECK(!Profile::is_taken());
    at_end = test::row_of(profile, SpanKind::op, "open");
    CHECK(at_end->total > 0);
    const ProfileSpan after(SpanKind::op, "after");
    test::pass_time();
  }
  CHECK(test::same_time(test::row_of(profile, SpanKind::op, "open").total, at_end->total));
  CHECK(!test::find_row(profile, SpanKind::op, "after"));
}

TEST_CASE("spans of an earlier profile, open on other threads, are not in a later one") {
  std::latch begun(1), over(1);
  std::optional<Profile> profile(std::in_place);
  std::jthread thread([&] {
    const ProfileSpan span(SpanKind::op, "long");
    begun.count_down();
    over.wait();
    const ProfileSpan inner(SpanKind::op, "inner");
  });
  begun.wait();
  profile.reset();
  profile.emplace();
  test::profiled_matmul();
  over.count_down();
  thread.join();
  profile->stop();
  CHECK(!test::find_row(*profile, SpanKind::op, "long"));
  CHECK(test::row_of(*profile, SpanKind::op, "inner").calls == 1);
  CHECK(test::row_of(*profile, SpanKind::op, "matmul").calls == 1);
}

TEST_CASE("one profile is taken at a time") {
  Profile first;
  CHECK_THROWS_AS(Profile(), StateError);
  CHECK_THROWS_WITH(Profile(),
                    "[profile] only one profile may record at a time. Received: a second one. "
                    "To fix: stop() the first.");
  first.stop();
  CHECK_NOTHROW(Profile());
}

}  // namespace profile_test
