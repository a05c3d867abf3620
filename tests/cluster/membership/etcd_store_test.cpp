#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include <tessera/framework/cluster/internal/free_port.hpp>
#include <tessera/framework/cluster/membership/etcd_gateway.hpp>

#include "tests/cluster/membership/elastic_members.hpp"
#include "tests/cluster/membership/fake_etcd.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/real_etcd.hpp"
#include "tests/support/skip.hpp"

namespace etcd_store_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

using Stores = std::vector<std::unique_ptr<MembershipStore>>;

MembershipOptions etcd_options(const std::string& where, int min, int expected, int max) {
  MembershipOptions options = member_options(where);
  options.rules = elastic_rules(min, expected, max);
  options.connect_timeout = 3s;
  options.environment = [](const char*) -> const char* { return nullptr; };
  return options;
}

Stores join_stores(const MembershipOptions& options, int count) {
  Stores stores;
  for (int i = 0; i < count; ++i) stores.push_back(MembershipStore::join(options));
  return stores;
}

/// Checks that all stores read the same membership of a generation; returns it.
Membership agreed(const Stores& stores, uint64_t generation) {
  const Membership first = wait_for_generation(*stores.front(), generation);
  CHECK(first.generation == generation);
  for (const auto& store : stores) CHECK(wait_for_generation(*store, generation) == first);
  return first;
}

TEST_CASE("members agree in etcd on the generations after losses, leavers and newcomers") {
  FakeEtcd etcd;
  const MembershipOptions options = etcd_options(etcd.url(), 1, 3, 3);
  Stores stores = join_stores(options, 3);
  const Membership first = agreed(stores, 1);
  // They are in the order in which they joined.
  for (size_t i = 0; i < 3; ++i) CHECK(first.members[i] == stores[i]->self());
  // The first one is lost.
  etcd.lose_lease_of("members/" + stores[0]->self().id);
  CHECK(wait_for_phase(*stores[0], MembershipPhase::expelled).reason.find("its lease in etcd") !=
        std::string::npos);
  stores.erase(stores.begin());
  const Membership second = agreed(stores, 2);
  CHECK(second.members == std::vector<Member>{stores[0]->self(), stores[1]->self()});
  REQUIRE(second.departures.size() == 1);
  CHECK(second.departures[0].member == first.members[0]);
  CHECK(second.departures[0].generation == 2);
  stores.push_back(MembershipStore::join(options));
  CHECK(agreed(stores, 3).members.back() == stores[2]->self());
  stores[0]->leave();
  const Membership fourth = wait_for_generation(*stores[0], 4);
  CHECK(fourth.rank_of(stores[0]->self().id) == -1);
  CHECK(fourth.departures.back().reason.empty());
  stores.erase(stores.begin());
  CHECK(agreed(stores, 4) == fourth);
}

TEST_CASE("in etcd, reports count for the newest generation only, and so does the end") {
  FakeEtcd etcd;
  const MembershipOptions options = etcd_options(etcd.url(), 1, 3, 3);
  Stores stores = join_stores(options, 3);
  const Membership first = agreed(stores, 1);
  stores[2]->report_lost(1, first.members[0].id, "connection reset by peer");
  CHECK(wait_for_phase(*stores[0], MembershipPhase::expelled).reason == "connection reset by peer");
  stores.erase(stores.begin());
  const Membership second = agreed(stores, 2);
  CHECK(second.departures.back().reason == "connection reset by peer");
  stores[0]->report_lost(1, second.members[1].id, "late");
  CHECK_FALSE(stores[0]->finish(1));
  CHECK(stores[0]->membership() == second);
  CHECK(stores[1]->finish(2));
  CHECK(wait_for_phase(*stores[0], MembershipPhase::finished).generation == 2);
  CHECK_THROWS_WITH(MembershipStore::join(options),
                    Catch::Contains("run \"job\" in etcd is not over. Received: it ended"));
  stores.clear();
  // What is left of the run has a lease.
  for (int i = 0; i < 100 && etcd.keys().size() > 1; ++i) std::this_thread::sleep_for(20ms);
  CHECK(etcd.keys() == std::vector<std::string>{"/tessera/job/state"});
}

TEST_CASE("with too few members in etcd all learn why the run waits, then why it ends") {
  FakeEtcd etcd;
  Stores stores = join_stores(etcd_options(etcd.url(), 2, 2, 2), 2);
  const Membership first = agreed(stores, 1);
  stores.pop_back();
  const Membership waits = wait_for_phase(*stores[0], MembershipPhase::waiting);
  CHECK(waits.reason.starts_with(
      "[elastic] the run needs at least 2 processes. Received: 1 process; pid "));
  CHECK(waits.members == first.members);
  CHECK(wait_for_phase(*stores[0], MembershipPhase::failed).generation == 1);
}

TEST_CASE(
    "racing proposals make one generation, with lost answers and an etcd that comes and goes") {
  FakeEtcd etcd;
  etcd.unavailable = 3;
  MembershipOptions options = etcd_options(etcd.url(), 1, 4, 8);
  options.rules.settle_time = 0ms;
  Stores stores = join_stores(options, 4);
  Membership last = agreed(stores, 1);
  const std::string fault = GENERATE("none", "lost answers", "refusals", "no watches", "silence");
  CAPTURE(fault);
  if (fault == "lost answers") etcd.hang_ups = 12;
  if (fault == "refusals") etcd.unavailable = 12;
  if (fault == "no watches") etcd.cuts_watches = true;
  if (fault == "silence") {
    etcd.silent = true;
    std::this_thread::sleep_for(1s);
    etcd.silent = false;
  }
  for (int i = 0; i < 3; ++i) {
    stores.push_back(MembershipStore::join(options));
    const Membership next = agreed(stores, last.generation + 1);
    CHECK(next.members.size() == last.members.size() + 1);
    last = next;
  }
}

TEST_CASE("a value in etcd without the job's secret is ignored, and a state without it refused") {
  FakeEtcd etcd;
  const MembershipOptions options = etcd_options(etcd.url(), 1, 1, 3);
  Stores stores = join_stores(options, 1);
  agreed(stores, 1);
  etcd.put("/tessera/job/members/stranger",
           R"({"text":"{\"member\":{\"id\":\"stranger\",\"host\":\"h\",\"pid\":1,)"
           R"(\"address\":\"127.0.0.1\",\"port\":1},\"leaving\":false}","proof":"00"})");
  etcd.put("/tessera/job/members/garbage", "\xff{");
  stores.push_back(MembershipStore::join(options));
  CHECK(agreed(stores, 2).members.size() == 2);
  MembershipOptions other = options;
  other.access.secret = "another secret of enough characters";
  CHECK_THROWS_WITH(MembershipStore::join(other), Catch::Contains("must have one secret"));
  other = options;
  other.rules.max_processes = 4;
  CHECK_THROWS_WITH(MembershipStore::join(other),
                    Catch::Contains("have the same limits. Received: 1 of 1:4 here, 1 of 1:3 in "
                                    "etcd"));
  other = options;
  other.job = "a/b";
  CHECK_THROWS_WITH(MembershipStore::join(other), Catch::Contains("[TESSERA_JOB]"));
}

TEST_CASE("an etcd that is missing, too old, another server or refuses gives a one-line error") {
  FakeEtcd etcd;
  MembershipOptions options = etcd_options(etcd.url(), 1, 1, 1);
  options.connect_timeout = 300ms;
  const auto error = [&] { return error_of([&] { MembershipStore::join(options); }); };
  SECTION("missing") {
    options.where = str("http://127.0.0.1:", free_port());
    CHECK(error() == str("[elastic] etcd answers (TESSERA_MEMBERS). Received: ", options.where,
                         ": Connection refused. To fix: start etcd there, and check URL, port and "
                         "firewall."));
  }
  SECTION("too old") {
    etcd.set_version("3.3.25");
    CHECK(error() == str("[elastic] etcd is of version 3.4 or newer. Received: version 3.3.25 at ",
                         etcd.url(), ". To fix: install a newer one."));
  }
  SECTION("another server") {
    etcd.set_version("hello");
    CHECK(error().find("another server at http://127.0.0.1:") != std::string::npos);
  }
  SECTION("silent") {
    etcd.silent = true;
    CHECK(error().find("it does not answer") != std::string::npos);
  }
  SECTION("without a user") {
    etcd.needs_token = true;
    CHECK(error() ==
          str("[elastic] etcd accepts /v3/lease/grant. Received: etcdserver: invalid auth token "
              "(status 401) from ",
              etcd.url(),
              ". To fix: if etcd asks for a user, set TESSERA_ETCD_USER and "
              "TESSERA_ETCD_PASSWORD_FILE."));
  }
  SECTION("with another password") {
    etcd.needs_token = true;
    options.where = str("http://u:secretword@", etcd.url().substr(7));
    CHECK(error().find("authentication failed") != std::string::npos);
    CHECK(error().find("secretword") == std::string::npos);
  }
}

TEST_CASE("a user's token is renewed, and the next endpoint is taken when one is gone") {
  FakeEtcd etcd;
  etcd.needs_token = true;
  const std::string gone = str("http://127.0.0.1:", free_port());
  const MembershipOptions options =
      etcd_options(gone + ",http://u:p@" + etcd.url().substr(7), 1, 1, 2);
  Stores stores = join_stores(options, 1);
  agreed(stores, 1);
  etcd.token = 2;
  stores.push_back(MembershipStore::join(options));
  agreed(stores, 2);
}

TEST_CASE("the URLs and credentials of etcd are read and checked") {
  const auto read = [](const std::string& text, std::map<std::string, std::string> variables = {},
                       bool insecure = false) {
    return etcd_access(
        "TESSERA_MEMBERS", text,
        [variables](const char* name) {
          const auto found = variables.find(name);
          return found == variables.end() ? nullptr : found->second.c_str();
        },
        insecure);
  };
  const EtcdAccess two = read("https://u:p@host1:2379,https://[::1]");
  REQUIRE(two.endpoints.size() == 2);
  CHECK(two.endpoints[0].url() == "https://host1:2379");
  CHECK(two.endpoints[1].url() == "https://[::1]:2379");
  CHECK(two.user == "u");
  CHECK(two.password == "p");
  CHECK(read("http://127.0.0.1:1", {{"TESSERA_ETCD_USER", "v"}, {"TESSERA_ETCD_PASSWORD", "q"}})
            .password == "q");
  CHECK(read("http://u:p@host1:1", {}, true).user == "u");
  for (const char* wrong : {"", "ftp://host1", "http://", "http://host 1", "http://host1:0",
                            "http://host1,", "https://u@host1", "http://u:pass@host1:1"}) {
    CAPTURE(wrong);
    const std::string error = error_of([&] { read(wrong); });
    CHECK(error.starts_with("[TESSERA_"));
    CHECK(error.find("pass@") == std::string::npos);
  }
  CHECK(error_of([&] {
          read("https://host1", {{"TESSERA_ETCD_KEY", "key.pem"}});
        }).find("a key alone") != std::string::npos);
}

TEST_CASE("50 changes in etcd leave no thread, descriptor, connection and key") {
  FakeEtcd etcd;
  MembershipOptions options = etcd_options(etcd.url(), 1, 1, 2);
  options.rules.settle_time = 0ms;
  const auto store = MembershipStore::join(options);
  wait_for_generation(*store, 1);
  const ptrdiff_t files = count_own("fd");
  const ptrdiff_t threads = count_own("task");
  for (uint64_t i = 0; i < 25; ++i) {
    auto other = MembershipStore::join(options);
    wait_for_generation(*other, 2 * i + 2);
    other.reset();
    CHECK(wait_for_generation(*store, 2 * i + 3).members.size() == 1);
  }
  for (int i = 0; i < 100 && count_own("fd") > files; ++i) std::this_thread::sleep_for(20ms);
  CHECK(count_own("fd") == files);
  CHECK(count_own("task") == threads);
  CHECK(etcd.keys().size() == 2);
}

std::vector<RankProcess> start_etcd_members(const MembershipOptions& options, int count) {
  std::vector<RankProcess> members;
  for (int i = 0; i < count; ++i) {
    members.emplace_back([options](const RankProcess::Tell& tell) { take_part(options, tell); });
  }
  return members;
}

TEST_CASE("real processes in a real etcd are killed, stopped and leave", "[nightly]") {
  if (!has_etcd()) return skip("etcd is not installed (Debian: etcd-server)");
  const RealEtcd etcd;
  MembershipOptions options = etcd_options(etcd.url(), 1, 3, 3);
  options.connect_timeout = 30s;
  options.rules.waiting_time = 10s;
  std::vector<RankProcess> members = start_etcd_members(options, 3);
  const auto all_read = [&](const std::string& begin) {
    std::string first;
    for (RankProcess& each : members) {
      const std::string line = each.line();
      CHECK(line.starts_with(begin));
      CHECK((first.empty() || first == line));
      first = line;
    }
    return first;
  };
  const auto member_at = [&](const std::string& text, size_t rank) {
    std::istringstream in(text.substr(text.find(" of ") + 4));
    int pid = 0;
    for (size_t i = 0; i <= rank; ++i) in >> pid;
    return std::find_if(members.begin(), members.end(),
                        [&](const RankProcess& each) { return each.pid() == pid; });
  };
  const auto replace = [&](std::vector<RankProcess>::iterator each) {
    std::vector<RankProcess> rest;
    for (auto at = members.begin(); at != members.end(); ++at) {
      if (at != each) rest.push_back(std::move(*at));
    }
    members.swap(rest);
  };
  std::string seen = all_read("generation 1 of ");
  // Killed: the first, then another one.
  for (const size_t rank : {0, 1}) {
    const auto begin = std::chrono::steady_clock::now();
    const auto killed = member_at(seen, rank);
    killed->signal(SIGKILL);
    replace(killed);
    seen = all_read("generation ");
    CHECK(std::chrono::steady_clock::now() - begin < 6s);
    for (RankProcess& each : start_etcd_members(options, 1)) members.push_back(std::move(each));
    seen = all_read("generation ");
  }
  CHECK(seen.starts_with("generation 5 of "));
  // Stopped and continued.
  const auto stopped = member_at(seen, 0);
  stopped->signal(SIGSTOP);
  const int pid = stopped->pid();
  for (RankProcess& each : members) {
    if (each.pid() != pid) CHECK(each.line().starts_with("generation 6 of "));
  }
  stopped->signal(SIGCONT);
  CHECK(stopped->line().starts_with("expelled: its lease in etcd ended"));
  seen = all_read("generation 7 of ");
  // Leaves.
  const auto leaver = member_at(seen, 2);
  leaver->signal(SIGTERM);
  CHECK(leaver->line() == "left");
  CHECK(leaver->wait() == 0);
  replace(leaver);
  seen = all_read("generation 8 of ");
}

TEST_CASE("a real etcd: stores agree, reports and the end count, an outage ends nothing",
          "[nightly]") {
  if (!has_etcd()) return skip("etcd is not installed (Debian: etcd-server)");
  const RealEtcd etcd;
  MembershipOptions options = etcd_options(etcd.url(), 1, 3, 3);
  options.connect_timeout = 30s;
  options.lease = 4s;
  Stores stores = join_stores(options, 3);
  const Membership first = agreed(stores, 1);
  stores[1]->report_lost(1, first.members[0].id, "connection reset by peer");
  CHECK(wait_for_phase(*stores[0], MembershipPhase::expelled).reason == "connection reset by peer");
  stores.erase(stores.begin());
  agreed(stores, 2);
  // Shorter than the lease.
  etcd.signal(SIGSTOP);
  std::this_thread::sleep_for(2500ms);
  etcd.signal(SIGCONT);
  stores.push_back(MembershipStore::join(options));
  agreed(stores, 3);
  for (uint64_t i = 0; i < 25; ++i) {
    stores.pop_back();
    agreed(stores, 4 + 2 * i);
    stores.push_back(MembershipStore::join(options));
    agreed(stores, 5 + 2 * i);
  }
  CHECK_FALSE(stores[0]->finish(52));
  CHECK(stores[0]->finish(53));
  for (const auto& store : stores) wait_for_phase(*store, MembershipPhase::finished);
}

}  // namespace etcd_store_test
