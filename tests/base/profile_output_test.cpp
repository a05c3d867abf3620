#include <tessera/framework/base/profile.hpp>

#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/profile_work.hpp"

namespace profile_output_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

Json trace_of(const Profile& profile) {
  const test::TempFolder folder;
  const std::string path = folder / "trace.json";
  profile.save(path);
  return read_json_file(path);
}

/// Returns the complete events named `name`, or all if it is empty.
std::vector<Json> complete(const Json& trace, const std::string& name = "") {
  std::vector<Json> list;
  for (const Json& event : trace) {
    if (event.at("ph") != "X") continue;
    if (name.empty() || event.at("name") == name) list.push_back(event);
  }
  return list;
}

}  // namespace

TEST_CASE("a full profile reports dropped spans in the table and the trace") {
  Profile profile({.max_spans = 10});
  {
    const ProfileSpan step(SpanKind::step, "train");
    for (int i = 0; i < 12; ++i) {
      const ProfileSpan op(SpanKind::op, "add");
    }
  }
  profile.stop();
  CHECK(test::row_of(profile, SpanKind::op, "add").calls == 9);
  CHECK(test::row_of(profile, SpanKind::step, "train").calls == 1);
  CHECK(profile.totals().left_out == 3);
  CHECK_THAT(profile.table(), Contains("the profile was full: it lacks the last 3 spans"));
  const Json trace = trace_of(profile);
  CHECK(complete(trace).size() == 10);
  CHECK(trace.back().at("ph") == "i");
  CHECK(trace.back().at("name") == "full: 3 later spans are left out");
}

TEST_CASE("the trace has one event per span, with the times of the rows") {
  Profile profile;
  for (int i = 0; i < 3; ++i) test::profiled_step();
  profile.stop();
  const Json trace = trace_of(profile);
  const auto events = complete(trace, "matmul");
  double microseconds = 0;
  for (const Json& event : events) {
    if (event.at("cat") == "op") microseconds += event.at("dur").get<double>();
  }
  CHECK(test::same_time(microseconds * 1e-6, test::row_of(profile, SpanKind::op, "matmul").total));
  CHECK(complete(trace).size() == 3 * (2 + 2 * 5));
  CHECK(complete(trace, "all_reduce").at(0).at("args") ==
        Json({{"kind", "collective"}, {"bytes", 800}}));
  // Events of spans inside a step are within the step's event.
  const Json step = complete(trace, "train").at(1);
  const double begin = step.at("ts"), end = begin + step.at("dur").get<double>();
  int64_t inside = 0;
  for (const Json& event : events) {
    const double at = event.at("ts");
    inside += at >= begin && at + event.at("dur").get<double>() <= end + 1e-6;
  }
  CHECK(inside == 4);
  CHECK(trace.at(1).at("args").at("name") == "main thread");
}

TEST_CASE("each thread has a lane in the trace, and helpers a line below the table") {
  Profile profile;
  test::profiled_matmul();
  std::thread(test::work_on_a_block).join();
  std::thread([] { const ProfileSpan span(SpanKind::data, "read batch"); }).join();
  profile.stop();
  const Json trace = trace_of(profile);
  CHECK(complete(trace, "all_reduce").at(0).at("tid") == 1);
  CHECK(complete(trace, "matmul").back().at("tid") == 2);
  CHECK(complete(trace, "read batch").at(0).at("tid") == 3);
  CHECK_THAT(profile.table(), Contains("ATen on helping threads: "));
}

TEST_CASE("names in the trace are valid JSON whatever characters they contain") {
  Profile profile;
  {
    const ProfileSpan quoted(SpanKind::op, "a \"quoted\\\n\x01 name");
    const ProfileSpan bytes(SpanKind::op, "no \xff UTF-8");
  }
  profile.stop();
  const Json trace = trace_of(profile);
  CHECK(complete(trace, "a \"quoted\\\n\x01 name").size() == 1);
  CHECK(complete(trace, "no \xEF\xBF\xBD UTF-8").size() == 1);
}

TEST_CASE("a trace that cannot be written is a FileError") {
  const Profile profile;
  CHECK_THROWS_AS(profile.save("/nonexistent/trace.json"), FileError);
}

TEST_CASE("the table has one line per row and one for the steps") {
  Profile profile;
  for (int i = 0; i < 2; ++i) test::profiled_step();
  profile.stop();
  const std::string table = profile.table();
  INFO(table);
  CHECK_THAT(table, Contains("kind        name        calls  total ms  ATen ms  overhead ms  "
                             "waiting ms"));
  CHECK_THAT(table, Contains("\nop          matmul          4  "));
  CHECK_THAT(table, Contains(" %  3.2 kB\n"));
  CHECK_THAT(table, Contains("\n2 steps of "));
  CHECK_THAT(table, Contains("\noutside of steps: "));
}

TEST_CASE("a profile without steps says so") {
  Profile profile;
  test::profiled_matmul();
  profile.stop();
  CHECK_THAT(profile.table(), Contains("no steps in "));
}

}  // namespace profile_output_test
