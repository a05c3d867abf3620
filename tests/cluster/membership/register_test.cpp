#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <tessera/framework/cluster/membership/register_client.hpp>

#include "tests/cluster/membership/elastic_members.hpp"
#include "tests/support/catch.hpp"

namespace register_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

/// A register in a process of its own.
struct RegisterProcess {
  explicit RegisterProcess(const MembershipRules& rules)
      : process([rules](const RankProcess::Tell& tell) {
          RegisterServer server(register_options(rules));
          tell(server.where());
          serve(server, [] { return false; });
        }),
        where(process.line()) {}

  RankProcess process;
  std::string where;
};

std::vector<RankProcess> start_members(const std::string& where, int count) {
  std::vector<RankProcess> members;
  for (int i = 0; i < count; ++i) {
    members.emplace_back(
        [where](const RankProcess::Tell& tell) { take_part(member_options(where), tell); });
  }
  return members;
}

/// Returns the index of the process that is at a position of a membership's text.
size_t process_at(const std::vector<RankProcess>& members, const std::string& text, size_t rank) {
  std::istringstream in(text.substr(text.find(" of ") + 4));
  int pid = 0;
  for (size_t i = 0; i <= rank; ++i) in >> pid;
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i].pid() == pid) return i;
  }
  FAIL("no such process in " << text);
  return 0;
}

TEST_CASE("the others agree on the next generation when any member is killed, also the first") {
  for (size_t rank = 0; rank < 3; ++rank) {
    CAPTURE(rank);
    const RegisterProcess members_register(elastic_rules(1, 3, 3));
    std::vector<RankProcess> members = start_members(members_register.where, 3);
    const std::string first = members[0].line();
    CHECK(first.starts_with("generation 1 of "));
    CHECK(members[1].line() == first);
    CHECK(members[2].line() == first);
    const size_t killed = process_at(members, first, rank);
    const auto begin = std::chrono::steady_clock::now();
    members[killed].signal(SIGKILL);
    std::string second;
    for (size_t i = 0; i < 3; ++i) {
      if (i == killed) continue;
      const std::string line = members[i].line();
      CHECK(line.starts_with("generation 2 of "));
      CHECK((second.empty() || second == line));
      second = line;
    }
    CHECK(second.find(str(" ", members[killed].pid())) == second.npos);
    CHECK(std::chrono::steady_clock::now() - begin < 5s);
    // A newcomer completes the third.
    std::vector<RankProcess> newcomers = start_members(members_register.where, 1);
    const std::string third = newcomers[0].line();
    CHECK(third ==
          str("generation 3 of", second.substr(second.find(" of ") + 3), " ", newcomers[0].pid()));
    for (size_t i = 0; i < 3; ++i) {
      if (i != killed) CHECK(members[i].line() == third);
    }
  }
}

TEST_CASE("a stopped member is expelled, told so, and comes back as a newcomer") {
  const RegisterProcess members_register(elastic_rules(1, 2, 2));
  std::vector<RankProcess> members = start_members(members_register.where, 2);
  const std::string first = members[0].line();
  CHECK(members[1].line() == first);
  const size_t stopped = process_at(members, first, 0);
  const size_t other = 1 - stopped;
  members[stopped].signal(SIGSTOP);
  CHECK(members[other].line() == str("generation 2 of ", members[other].pid()));
  members[stopped].signal(SIGCONT);
  CHECK(members[stopped].line().starts_with("expelled: silent for 1."));
  const std::string third =
      str("generation 3 of ", members[other].pid(), " ", members[stopped].pid());
  CHECK(members[stopped].line() == third);
  CHECK(members[other].line() == third);
}

TEST_CASE("SIGTERM makes a generation without the leaver, whose end changes nothing") {
  const RegisterProcess members_register(elastic_rules(1, 2, 2));
  std::vector<RankProcess> members = start_members(members_register.where, 2);
  const std::string first = members[0].line();
  CHECK(members[1].line() == first);
  const size_t leaver = process_at(members, first, 0);
  members[leaver].signal(SIGTERM);
  CHECK(members[leaver].line() == "left");
  CHECK(members[leaver].wait() == 0);
  const std::string second = str("generation 2 of ", members[1 - leaver].pid());
  CHECK(members[1 - leaver].line() == second);
  // The last one need not wait for anybody.
  members[1 - leaver].signal(SIGTERM);
  CHECK(members[1 - leaver].line() == "left");
}

TEST_CASE("all members learn why the run waits and why it ends") {
  const RegisterProcess members_register(elastic_rules(3, 3, 3));
  std::vector<RankProcess> members = start_members(members_register.where, 3);
  const std::string first = members[0].line();
  CHECK(members[1].line() == first);
  CHECK(members[2].line() == first);
  members[2].signal(SIGKILL);
  for (const size_t i : {0, 1}) {
    const std::string waits = members[i].line();
    CHECK(
        waits.starts_with("waits: [elastic] the run needs at least 3 processes. Received: 2 "
                          "processes; pid "));
    CHECK(waits.find("its connection closed: killed or crashed") != waits.npos);
    CHECK(members[i].line().starts_with("failed: [elastic] the run needs at least 3 processes"));
    CHECK(members[i].wait() == 0);
  }
}

/// A register on a thread of this process.
class RegisterThread {
 public:
  explicit RegisterThread(const MembershipRules& rules) : server_(register_options(rules)) {
    thread_ = std::thread([this] { serve(server_, [this] { return stop_.load(); }); });
  }
  ~RegisterThread() {
    stop_ = true;
    thread_.join();
  }
  std::string where() const { return server_.where(); }
  int port() const { return std::stoi(where().substr(where().find(':') + 1)); }

 private:
  RegisterServer server_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST_CASE("a member that another reports as lost is expelled; late reports are ignored") {
  const RegisterThread members_register(elastic_rules(1, 3, 3));
  std::vector<std::unique_ptr<MembershipStore>> stores;
  for (int i = 0; i < 3; ++i) {
    stores.push_back(MembershipStore::join(member_options(members_register.where())));
  }
  for (const auto& store : stores) CHECK(wait_for_generation(*store, 1).members.size() == 3);
  stores[0]->report_lost(1, stores[1]->self().id, "connection reset by peer");
  CHECK(wait_for_phase(*stores[1], MembershipPhase::expelled).reason == "connection reset by peer");
  const Membership second = wait_for_generation(*stores[0], 2);
  CHECK(wait_for_generation(*stores[2], 2) == second);
  CHECK(second.rank_of(stores[1]->self().id) == -1);
  // What was said in the first generation counts no more.
  stores[0]->report_lost(1, stores[2]->self().id, "late");
  CHECK_FALSE(stores[0]->finish(1));
  CHECK_FALSE(stores[1]->finish(2));
  CHECK(stores[0]->membership() == second);
  CHECK(stores[2]->finish(2));
  CHECK(wait_for_phase(*stores[0], MembershipPhase::finished).generation == 2);
}

TEST_CASE("a callback hears each membership once") {
  const RegisterThread members_register(elastic_rules(1, 1, 2));
  const auto store = MembershipStore::join(member_options(members_register.where()));
  wait_for_generation(*store, 1);
  std::mutex mutex;
  std::condition_variable told;
  std::vector<uint64_t> heard;
  store->set_on_change([&](const Membership& now) {
    const std::lock_guard lock(mutex);
    heard.push_back(now.revision);
    told.notify_all();
  });
  const auto other = MembershipStore::join(member_options(members_register.where()));
  wait_for_generation(*store, 2);
  CHECK(other->finish(2));
  wait_for_phase(*store, MembershipPhase::finished);
  {
    // A waiting thread may see a membership before the callback hears it.
    std::unique_lock lock(mutex);
    told.wait_for(lock, 10s, [&] { return heard.size() == 3; });
  }
  store->set_on_change({});
  CHECK(heard == std::vector<uint64_t>{1, 2, 3});
}

TEST_CASE("the register refuses other secrets and jobs, and strangers do no harm") {
  const RegisterThread members_register(elastic_rules(1, 1, 2));
  const auto store = MembershipStore::join(member_options(members_register.where()));
  const Membership first = wait_for_generation(*store, 1);
  MembershipOptions other = member_options(members_register.where());
  other.access.secret = "another secret of enough characters";
  CHECK_THROWS_WITH(MembershipStore::join(other), Catch::Contains("must have one secret"));
  other.access.secret.clear();
  CHECK_THROWS_WITH(MembershipStore::join(other), Catch::Contains("the secret of its job"));
  other = member_options(members_register.where());
  other.job = "another";
  CHECK_THROWS_WITH(MembershipStore::join(other), Catch::Contains("must belong to one run"));
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 300; ++i) {
    const std::string bytes = i % 3 == 0 ? "" : i % 3 == 1 ? "GET / HTTP/1.1\r\n\r\n" : "TSRC\xff";
    strangers.push_back(connect_and_send(members_register.port(), bytes));
  }
  const auto second = MembershipStore::join(member_options(members_register.where()));
  CHECK(wait_for_generation(*second, 2).members.size() == 2);
  CHECK(wait_for_generation(*store, 2).members.front() == first.members.front());
  MembershipOptions nowhere = member_options(str("127.0.0.1:", free_port()));
  nowhere.connect_timeout = 100ms;
  CHECK_THROWS_WITH(MembershipStore::join(nowhere),
                    Catch::Contains("[elastic] the register of members answers at 127.0.0.1:"));
}

TEST_CASE("50 changes leave no thread and no descriptor") {
  const RegisterThread members_register(elastic_rules(1, 1, 2));
  const auto store = MembershipStore::join(member_options(members_register.where()));
  wait_for_generation(*store, 1);
  const ptrdiff_t files = count_own("fd");
  const ptrdiff_t threads = count_own("task");
  for (uint64_t i = 0; i < 25; ++i) {
    auto other = MembershipStore::join(member_options(members_register.where()));
    wait_for_generation(*other, 2 * i + 2);
    if (i % 2 == 0) {
      other->leave();
      wait_for_generation(*store, 2 * i + 3);
    }
    other.reset();
    CHECK(wait_for_generation(*store, 2 * i + 3).members.size() == 1);
  }
  // The register closes its end after its member's.
  for (int i = 0; i < 100 && count_own("fd") > files; ++i) std::this_thread::sleep_for(20ms);
  CHECK(count_own("fd") == files);
  CHECK(count_own("task") == threads);
  CHECK(store->membership().generation == 51);
  CHECK(store->membership().departures.size() == 25);
}

TEST_CASE("nothing older is believed, and nothing after the expulsion") {
  MembershipNews news;
  Membership membership;
  membership.revision = 5;
  membership.generation = 3;
  CHECK(news.update(membership));
  CHECK_FALSE(news.update(membership));
  membership.revision = 6;
  membership.generation = 2;
  CHECK_FALSE(news.update(membership));
  CHECK(news.newest().generation == 3);
  news.expel("silent");
  membership.revision = 9;
  membership.generation = 4;
  CHECK_FALSE(news.update(membership));
  CHECK(news.newest().phase == MembershipPhase::expelled);
}

TEST_CASE("processes of two generations do not meet") {
  Membership membership;
  membership.generation = 1;
  membership.members = {{"a", "host1", 1, "127.0.0.1", free_port()},
                        {"b", "host1", 2, "127.0.0.1", free_port()}};
  const JobAccess access{elastic_secret};
  const Cluster first = cluster_of(membership, "b", "job", access);
  CHECK(first.rank == 1);
  CHECK(first.local_rank == 1);
  CHECK(first.job == "job/generation 1");
  membership.generation = 2;
  const Cluster second = cluster_of(membership, "a", "job", access);
  CHECK(second.port == first.port);
  CHECK(second.secret != first.secret);
  const auto options_of = [](const Cluster& cluster) {
    CoordinationOptions options = rank_options(cluster.rank, cluster.size, cluster.port);
    options.job = cluster.job;
    options.access.secret = cluster.secret;
    return options;
  };
  // The first member listens for the second generation on the port of the first.
  std::shared_ptr<Coordination> hub;
  std::thread listening([&] { hub = Coordination::join(options_of(second)); });
  CHECK_THROWS_WITH(Coordination::join(options_of(first)), Catch::Contains("one secret"));
  const auto rank1 = Coordination::join(options_of(cluster_of(membership, "b", "job", access)));
  listening.join();
  CHECK(hub->peers().size() == 2);
  std::thread leaving([&] { hub->leave(); });
  rank1->leave();
  leaving.join();
  CHECK_THROWS_WITH(cluster_of(membership, "c", "job", access),
                    Catch::Contains("it is none of its 2 members"));
}

}  // namespace register_test
