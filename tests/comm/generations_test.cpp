// What a process of an earlier generation of an elastic run sends late.
#include <future>
#include <latch>
#include <map>
#include <mutex>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/internal/free_port.hpp>
#include <tessera/framework/cluster/membership/membership_store.hpp>
#include <tessera/framework/comm/internal/make_engine.hpp>
#include <tessera/framework/comm/internal/process_communicator.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/channel_ranks.hpp"
#include "tests/support/files.hpp"
#include "tests/support/text_hub.hpp"

namespace generations_test {

using namespace tessera;
using namespace tessera::detail;
using namespace std::chrono_literals;

namespace {

/// A generation with these members, the first of which listens on `port`.
Membership generation(uint64_t number, const std::vector<std::string>& ids, int port) {
  Membership membership;
  membership.generation = number;
  for (const std::string& id : ids) {
    membership.members.push_back({id, "host1", id[0], "127.0.0.1", port});
  }
  return membership;
}

struct Connections {
  std::shared_ptr<Coordination> coordination;
  std::shared_ptr<Engine> engine;
};

/// Connects a member with the others, as `create_distributed_mesh` and fit do.
Connections connect(const Membership& membership, const std::string& id, bool shared_memory) {
  const Cluster cluster =
      cluster_of(membership, id, "job", {.secret = "a secret that all of the members share"});
  const JobAccess access{.secret = cluster.secret};
  Connections made;
  made.coordination = Coordination::join({.rank = cluster.rank,
                                          .size = cluster.size,
                                          .address = cluster.address,
                                          .port = cluster.port,
                                          .job = cluster.job,
                                          .access = access,
                                          .connect_timeout = 60s,
                                          .timeout = 60s,
                                          .say = [](const std::string&) {}});
  made.engine = make_engine(made.coordination, {.shared_memory = shared_memory}, access, Device{});
  return made;
}

std::shared_ptr<ProcessCommunicator> communicator_by(const Connections& made) {
  return std::make_shared<ProcessCommunicator>(made.coordination, made.engine,
                                               ProcessCommunicatorOptions{.elastic = true});
}

/// Begins the sum of a value of each of three processes.
WorkPtr begin_sum(ProcessCommunicator& communicator, double value, at::Tensor& out) {
  const Group group = test::group_of({0, 1, 2}, communicator.rank());
  return communicator.all_reduce(group, Reduce::sum, {at::full({1000}, value, at::kDouble)}, out);
}

double sum(ProcessCommunicator& communicator, double value) {
  at::Tensor out;
  wait(begin_sum(communicator, value, out));
  return out.min().item<double>();
}

/// Whether `action` throws what fit goes on after.
bool is_change(const std::function<void()>& action) {
  try {
    action();
  } catch (const MembershipChanged&) {
    return true;
  }
  return false;
}

/// What the processes find, by name; "" for each that is as it should be.
class Findings {
 public:
  void expect(bool ok, const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (!ok) wrong_ += what + "; ";
  }
  std::string wrong() const { return wrong_; }

 private:
  std::mutex mutex_;
  std::string wrong_;
};

}  // namespace

TEST_CASE("messages of an earlier generation that come late reach nobody") {
  const bool shared_memory = GENERATE(true, false);
  CAPTURE(shared_memory);
  const test::TempFolder reports;
  ::setenv("TESSERA_REPORT_DIR", reports.path().c_str(), 0);
  const int port = free_port();
  // The processes "a" and "b" go on without "c", which does not notice, and take in "d".
  const Membership first = generation(1, {"a", "b", "c"}, port);
  const Membership second = generation(2, {"a", "b", "d"}, port);
  std::promise<void> parted, refused;
  const std::shared_future<void> has_parted = parted.get_future().share(),
                                 was_refused = refused.get_future().share();
  std::latch both_begun(2);
  Findings findings;
  const auto goes_on = [&](const std::string& id, double value) {
    const auto communicator = communicator_by(connect(first, id, shared_memory));
    findings.expect(sum(*communicator, value) == 111, id + ": the first sum");
    at::Tensor late;
    const WorkPtr begun = begin_sum(*communicator, value, late);
    const auto gathers = communicator->gather_by_present_connections();
    both_begun.arrive_and_wait();
    communicator->disconnect();
    if (id == "b") {
      parted.set_value();
      was_refused.wait();
    }
    const Connections made = connect(second, id, shared_memory);
    communicator->reconnect(made.coordination, made.engine);
    // Neither ends the present connections.
    findings.expect(is_change([&] { wait(begun); }), id + ": the collective that was begun");
    findings.expect(is_change([&] { gathers("checkpoint", "late"); }), id + ": the late text");
    findings.expect(sum(*communicator, 2 * value) == 1022, id + ": the second sum");
    communicator->leave();
  };
  const auto comes_late = [&] {
    const auto communicator = communicator_by(connect(first, "c", shared_memory));
    findings.expect(sum(*communicator, 100) == 111, "c: the first sum");
    has_parted.wait();
    // The first member waits for the second generation, on the port of the first.
    try {
      connect(first, "c", shared_memory);
      findings.expect(false, "a process of the first generation was admitted to the second");
    } catch (const Error&) {
    }
    refused.set_value();
    // Over shared memory, the sums that the others had begun are still there.
    double late = 111;
    const bool is_over = is_change([&] { late = sum(*communicator, 100); });
    findings.expect(is_over || (shared_memory && late == 111), "c: the late sum");
    findings.expect(is_change([&] { communicator->gather("step", "late"); }), "c: the late text");
  };
  const auto joins = [&] {
    was_refused.wait();
    const auto communicator = communicator_by(connect(second, "d", shared_memory));
    findings.expect(sum(*communicator, 1000) == 1022, "d: the second sum");
    communicator->leave();
  };
  test::on_threads(4, [&](int number) {
    const c10::InferenceMode inference;
    try {
      if (number == 0) goes_on("a", 1);
      if (number == 1) goes_on("b", 10);
      if (number == 2) comes_late();
      if (number == 3) joins();
    } catch (const std::exception& error) {
      findings.expect(false, error.what());
      // Nobody waits for it.
      if (number == 2) refused.set_value();
    }
  });
  CHECK(findings.wrong() == "");
}

}  // namespace generations_test
