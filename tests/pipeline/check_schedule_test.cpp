#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <tessera/framework/pipeline/check_schedule.hpp>
#include <tessera/framework/pipeline/make_schedule.hpp>

using namespace tessera;
using namespace tessera::detail;
using Catch::Contains;

namespace check_schedule_test {

using Actions = std::vector<PipelineAction>;

/// Returns the position of an action; the test fails without it.
size_t position_of(const Actions& actions, const std::string& text) {
  const auto at = std::find_if(actions.begin(), actions.end(), [&](const PipelineAction& action) {
    return to_string(action) == text;
  });
  REQUIRE(at != actions.end());
  return static_cast<size_t>(at - actions.begin());
}

void exchange(Actions& actions, const std::string& a, const std::string& b) {
  std::swap(actions[position_of(actions, a)], actions[position_of(actions, b)]);
}

void move_before(Actions& actions, const std::string& moved, const std::string& other) {
  const size_t from = position_of(actions, moved);
  const PipelineAction action = actions[from];
  actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(from));
  const size_t to = position_of(actions, other);
  actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(to), action);
}

void remove(Actions& actions, const std::string& text) {
  actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(position_of(actions, text)));
}

/// A change of a valid schedule, and what its error says.
struct Fault {
  std::string name;
  ScheduleOptions options;
  std::function<void(PipelineSchedule&)> plant;
  ScheduleFault fault;
  std::vector<std::string> texts;
  ScheduleChecks checks = {};
};

TEST_CASE("planted faults are refused, each by its own message") {
  const ScheduleOptions plain{.name = "1f1b", .devices = 3, .microbatches = 4};
  const ScheduleOptions halves{.name = "zb_h1", .devices = 3, .microbatches = 4};
  const ScheduleOptions rounds{.name = "interleaved", .devices = 2, .microbatches = 4};
  const std::vector<Fault> faults = {
      {"an action twice",
       plain,
       [](PipelineSchedule& s) {
         s.actions[1].push_back({1, ActionKind::backward, 2});
       },
       ScheduleFault::repeated,
       {"device 1, stage 1, microbatch 2]", "each action once", "1B2 twice"}},
      {"a missing action",
       plain,
       [](PipelineSchedule& s) { remove(s.actions[2], "2F3"); },
       ScheduleFault::missing,
       {"device 2, stage 2, microbatch 3]", "no 2F3"}},
      {"no backward pass at all",
       plain,
       [](PipelineSchedule& s) { remove(s.actions[0], "0B1"); },
       ScheduleFault::missing,
       {"device 0, stage 0, microbatch 1]", "no 0B1"}},
      {"a missing weight gradient",
       halves,
       [](PipelineSchedule& s) { remove(s.actions[0], "0W1"); },
       ScheduleFault::missing,
       {"device 0, stage 0, microbatch 1]", "no 0W1"}},
      {"a missing input gradient",
       halves,
       [](PipelineSchedule& s) { remove(s.actions[0], "0I1"); },
       ScheduleFault::missing,
       {"device 0, stage 0, microbatch 1]", "no 0I1"}},
      {"an action on another device",
       plain,
       [](PipelineSchedule& s) {
         remove(s.actions[2], "2F3");
         s.actions[0].push_back({2, ActionKind::forward, 3});
       },
       ScheduleFault::wrong_device,
       {"device 0, stage 2, microbatch 3]", "stage 2 is on device 2"}},
      {"a microbatch that does not exist",
       plain,
       [](PipelineSchedule& s) {
         s.actions[0].push_back({0, ActionKind::forward, 4});
       },
       ScheduleFault::unknown,
       {"device 0, stage 0, microbatch 4]", "3 stages and 4 microbatches has no others"}},
      {"B beside W",
       halves,
       [](PipelineSchedule& s) {
         s.actions[1].push_back({1, ActionKind::backward, 0});
       },
       ScheduleFault::mixed_backward,
       {"device 1, stage 1, microbatch 0]", "B, or I and W", "1B0 and 1I0"}},
      {"backward before forward",
       plain,
       [](PipelineSchedule& s) { exchange(s.actions[2], "2F1", "2B1"); },
       ScheduleFault::order,
       {"device 2, stage 2, microbatch 1]", "2B1 before 2F1"}},
      {"W before I",
       halves,
       [](PipelineSchedule& s) { exchange(s.actions[0], "0W2", "0I2"); },
       ScheduleFault::order,
       {"device 0, stage 0, microbatch 2]", "0W2 before 0I2"}},
      {"devices that wait for each other",
       plain,
       [](PipelineSchedule& s) {
         move_before(s.actions[1], "1B0", "1F1");
         move_before(s.actions[2], "2F1", "2B0");
       },
       ScheduleFault::cycle,
       {"device 1, stage 1, microbatch 0]", "1RECV_B0 waits for 2SEND_B0 of device 2",
        "wait for each other"},
       {}},
      {"receives in another order",
       rounds,
       [](PipelineSchedule& s) {
         exchange(s.actions[1], "1F2", "1F3");
         exchange(s.actions[1], "3F2", "3F3");
         exchange(s.actions[1], "3B2", "3B3");
       },
       ScheduleFault::transfer_order,
       {"device 1, stage 1, microbatch 3]", "in the order in which device 0 sends", "1RECV_F3",
        "0SEND_F2"}},
      {"more in flight than allowed",
       plain,
       [](PipelineSchedule&) {},
       ScheduleFault::in_flight,
       {"device 0, stage 0, microbatch 2]", "at most 2 microbatches", "3 in 0F2"},
       {.in_flight_bounds = {2, 2, 1}}},
      {"a receive that blocks an action",
       plain,
       [](PipelineSchedule& s) {
         s = with_transfers(s);
         move_before(s.actions[0], "0RECV_B1", "0F3");
       },
       ScheduleFault::early_receive,
       {"device 0, stage 0, microbatch 1]", "0RECV_B1 before 0F3", "move it before 0B1"}},
      {"a send before its action",
       plain,
       [](PipelineSchedule& s) {
         s = with_transfers(s);
         exchange(s.actions[0], "0F0", "0SEND_F0");
       },
       ScheduleFault::transfer,
       {"device 0, stage 0, microbatch 0]", "0SEND_F0 before 0F0"}},
      {"a receive after its action",
       plain,
       [](PipelineSchedule& s) {
         s = with_transfers(s);
         exchange(s.actions[1], "1RECV_F0", "1F0");
       },
       ScheduleFault::transfer,
       {"device 1, stage 1, microbatch 0]", "1RECV_F0 after 1F0"}},
      {"a missing send",
       plain,
       [](PipelineSchedule& s) {
         s = with_transfers(s);
         remove(s.actions[0], "0SEND_F2");
       },
       ScheduleFault::transfer,
       {"device 0, stage 0, microbatch 2]", "no 0SEND_F2"}},
      {"a needless send",
       plain,
       [](PipelineSchedule& s) {
         s = with_transfers(s);
         s.actions[2].push_back({2, ActionKind::send_forward, 0});
       },
       ScheduleFault::transfer,
       {"device 2, stage 2, microbatch 0]", "2SEND_F0"}},
      {"unequal numbers of stages",
       plain,
       [](PipelineSchedule& s) { s.device_of[2] = 1; },
       ScheduleFault::shape,
       {"[pipeline schedule]", "same number of stages"}},
  };
  std::vector<std::string> messages;
  for (const Fault& fault : faults) {
    INFO(fault.name);
    PipelineSchedule schedule = make_schedule(fault.options);
    check_schedule(schedule);
    fault.plant(schedule);
    try {
      check_schedule(schedule, fault.checks);
      FAIL("no error");
    } catch (const ScheduleError& error) {
      const std::string text = error.what();
      INFO(text);
      CHECK(error.fault() == fault.fault);
      for (const std::string& part : fault.texts) CHECK_THAT(text, Contains(part));
      CHECK(text.find('\n') == std::string::npos);
      if (fault.fault != ScheduleFault::shape) {
        CHECK_THAT(text, Contains(str("device ", error.device(), ", stage ", error.action().stage,
                                      ", microbatch ", error.action().microbatch)));
      }
      CHECK(std::find(messages.begin(), messages.end(), text) == messages.end());
      messages.push_back(text);
    }
  }
  CHECK(messages.size() == faults.size());
}

TEST_CASE("sends and receives are next to what they are for") {
  PipelineSchedule schedule =
      make_schedule({.name = "interleaved", .devices = 2, .microbatches = 2});
  const PipelineSchedule lowered = with_transfers(schedule);
  std::string text;
  for (const PipelineAction& action : lowered.actions[1]) text += to_string(action) + " ";
  CHECK(text ==
        "1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 3RECV_F0 3F0 3B0 3SEND_B0 3RECV_F1 3F1 3B1 "
        "3SEND_B1 1RECV_B0 1B0 1SEND_B0 1RECV_B1 1B1 1SEND_B1 ");
  CHECK(with_transfers(lowered) == lowered);
  CHECK(without_transfers(lowered) == schedule);
  check_schedule(lowered);
  // A V has two stages on its last device, which exchange nothing.
  const PipelineSchedule v =
      with_transfers(make_schedule({.name = "zb_v", .devices = 2, .microbatches = 1}));
  CHECK(std::none_of(v.actions[1].begin(), v.actions[1].end(), [](const PipelineAction& action) {
    return action == PipelineAction{1, ActionKind::send_forward, 0} ||
           action == PipelineAction{2, ActionKind::recv_forward, 0};
  }));
}

}  // namespace check_schedule_test
