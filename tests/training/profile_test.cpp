#include <tessera/framework/base/profile.hpp>

#include <cmath>

#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/small_fit.hpp"

namespace profile_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// Sums over the rows of a kind, optionally of one name.
Profile::Row sum(const Profile& profile, SpanKind kind, const std::string& name = "") {
  Profile::Row all{.kind = kind, .name = name};
  for (const Profile::Row& row : profile.rows()) {
    if (row.kind != kind || (!name.empty() && row.name != name)) continue;
    all.calls += row.calls;
    all.total += row.total;
    all.waiting += row.waiting;
    all.bytes += row.bytes;
  }
  return all;
}

Sequential small(const Mesh& mesh, bool run_eagerly) {
  const Sequential model = test::small_model();
  CompileOptions options = test::small_compile(test::small_layouts("data", mesh));
  options.run_eagerly = run_eagerly;
  model.compile(options);
  return model;
}

}  // namespace

TEST_CASE("a fit's profile has its steps and their components") {
  namespace small_fit = test::small_fit;
  const bool run_eagerly = GENERATE(true, false);
  CAPTURE(run_eagerly);
  const Sequential model = small(create_mesh({{"batch", 4}}), run_eagerly);
  Profile profile;
  model.fit(test::small_data(small_fit::rows), small_fit::options_of());
  profile.stop();
  // 20 rows in batches of 16.
  constexpr int64_t train = small_fit::epochs * small_fit::steps, test = small_fit::epochs * 2;
  CHECK(sum(profile, SpanKind::step, "train").calls == train);
  CHECK(sum(profile, SpanKind::step, "test").calls == test);
  // Forward three with their biases, backward three of the kernels and two of the inputs.
  CHECK(sum(profile, SpanKind::op, "dense_relu").calls == (train + test) * 2);
  CHECK(sum(profile, SpanKind::op, "dense").calls == train + test);
  CHECK(sum(profile, SpanKind::op, "matmul").calls == train * 5);
  CHECK(sum(profile, SpanKind::optimizer).calls == train);
  CHECK(sum(profile, SpanKind::metrics, "read loss").calls == train + test);
  CHECK(sum(profile, SpanKind::data, "pack_batch").calls == train + test);
  CHECK(sum(profile, SpanKind::data, "read batch").calls >= train + test);
  CHECK(sum(profile, SpanKind::wait, "next batch").calls >= train + test);
  CHECK(sum(profile, SpanKind::callback, "batch_end").calls == train + test);

  double in_steps = 0;
  for (const Profile::Row& row : profile.rows()) in_steps += row.in_steps;
  const Profile::Totals all = profile.totals();
  CHECK(all.steps == train + test);
  CHECK(std::abs(in_steps - all.time) < 1e-9);
  CHECK(std::abs(all.aten + all.waiting + all.overhead - all.time) < 1e-9);
  CHECK(all.aten > 0);
}

TEST_CASE("collectives of virtual devices have the bytes of the communication log") {
  const Sequential model = small(create_mesh({{"batch", 8}}), true);
  CommLog log;
  Profile profile;
  {
    const CommLogScope scope(log);
    model.fit(test::small_data(64), {.batch_size = 16, .verbose = 0});
  }
  profile.stop();
  int64_t bytes = 0;
  for (const CommEntry& entry : log.entries()) {
    REQUIRE(entry.op == CommOp::all_reduce);
    bytes += entry.bytes;
  }
  CHECK(bytes > 0);
  CHECK(sum(profile, SpanKind::collective, "all_reduce").bytes == bytes);
}

}  // namespace profile_test
