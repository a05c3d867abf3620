#include <tessera/framework/comm/internal/elastic_run.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/internal/elastic_cluster.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>

namespace tessera::detail {
namespace {

using std::chrono::steady_clock;

/// How long the register may take to notice why connections broke: its own timeout, and some more.
constexpr auto reason_patience = std::chrono::seconds(15);
constexpr auto look_interval = std::chrono::milliseconds(100);

std::mutex elastic_mutex;
/// Never destroyed: its thread may tell of changes until the process ends.
ElasticRun* elastic_run = nullptr;

/// Returns the rules of TESSERA_ELASTIC, MIN:MAX, for a register in etcd; a launcher has its own.
MembershipRules rules_of(const Environment& variables) {
  const std::optional<std::string> text = variables.find("TESSERA_ELASTIC");
  MembershipRules rules;
  if (!text) return rules;
  const size_t colon = text->find(':');
  if (colon == text->npos) {
    throw ConfigError("TESSERA_ELASTIC", "must be a minimum and a maximum of processes",
                      in_quotes(*text), "write for example 2:4");
  }
  rules.min_processes = read_integer("TESSERA_ELASTIC", text->substr(0, colon), 1, max_processes);
  rules.max_processes = read_integer("TESSERA_ELASTIC", text->substr(colon + 1), 1, max_processes);
  rules.expected = rules.min_processes;
  return rules;
}

MembershipOptions membership_options(const std::string& job, const JobAccess& access) {
  const Environment variables{{}};
  MembershipOptions options;
  options.where = register_address();
  options.job = job;
  options.access = access;
  options.rules = rules_of(variables);
  return options;
}

bool has_lost(const Membership& newest, const Membership& own) {
  return std::any_of(newest.departures.begin(), newest.departures.end(), [&](const auto& each) {
    return !each.reason.empty() && own.rank_of(each.member.id) >= 0;
  });
}

const bool joins_elastic_runs = [] {
  elastic_cluster() = ElasticRun::join;
  return true;
}();

}  // namespace

ElasticRun* ElasticRun::current() {
  const std::lock_guard lock(elastic_mutex);
  return elastic_run;
}

Cluster ElasticRun::join(const ClusterFlags& flags) {
  const std::lock_guard lock(elastic_mutex);
  if (!elastic_run) elastic_run = new ElasticRun(flags);
  return elastic_run->cluster();
}

ElasticRun::ElasticRun(const ClusterFlags& flags)
    : job_(Environment({}).find("TESSERA_JOB").value_or("")) {
  Cluster asked;
  asked.insecure = flags.insecure;
  asked.encrypt = flags.encrypt;
  access_ = job_access(asked);
  store_ = MembershipStore::join(membership_options(job_, access_));
  while (true) {
    const Membership now = store_->membership();
    const bool in = now.phase == MembershipPhase::running && now.rank_of(store_->self().id) >= 0;
    if (in) {
      enter(now);
      return;
    }
    if (now.is_over()) throw CommError(end_text(now));
    store_->wait_for_change(now.revision, reason_patience);
  }
}

ElasticRun::~ElasticRun() {
  if (store_) store_->set_on_change({});
}

Cluster ElasticRun::cluster() const {
  Cluster cluster = cluster_of(membership_, store_->self().id, job_, access_);
  // A launcher's number of this process on its host, which no generation changes.
  const std::optional<std::string> slot = Environment({}).find("LOCAL_RANK");
  if (slot) cluster.local_rank = read_integer("LOCAL_RANK", *slot, 0, max_processes);
  return cluster;
}

bool ElasticRun::has_lost_members() const { return has_lost(store_->membership(), membership_); }

bool ElasticRun::is_broken() const {
  const Membership now = store_->membership();
  return now.is_over() || now.phase == MembershipPhase::waiting;
}

bool ElasticRun::is_first_of_failed() const {
  const Membership now = store_->membership();
  if (now.phase != MembershipPhase::failed) return false;
  const auto first = std::find_if(now.members.begin(), now.members.end(),
                                  [&](const Member& each) { return now.is_member(each.id); });
  return first != now.members.end() && first->id == store_->self().id;
}

bool ElasticRun::given_up() const {
  const Membership now = store_->membership();
  return now.is_over() || now.phase == MembershipPhase::waiting || now.generation > generation_;
}

void ElasticRun::leave() {
  if (!std::exchange(leaves_, true)) store_->leave();
}

void ElasticRun::attach(const std::shared_ptr<ProcessCommunicator>& communicator) {
  {
    const std::lock_guard lock(mutex_);
    communicator_ = communicator;
  }
  store_->set_on_change([this](const Membership& membership) { on_change(membership); });
}

uint64_t ElasticRun::begin_fit() {
  survives_ = true;
  set_joining(false);
  return ++fits_;
}

void ElasticRun::set_joining(bool joining) {
  const std::lock_guard lock(mutex_);
  if (const auto communicator = communicator_.lock()) communicator->set_joining(joining);
}

void ElasticRun::on_change(const Membership& newest) {
  if (!survives_) return;
  std::shared_ptr<ProcessCommunicator> communicator;
  {
    const std::lock_guard lock(mutex_);
    const bool out =
        newest.phase == MembershipPhase::expelled || newest.phase == MembershipPhase::failed;
    if (!out && !has_lost(newest, membership_)) return;
    communicator = communicator_.lock();
  }
  if (communicator) communicator->give_up(end_text(newest));
}

std::string ElasticRun::end_text(const Membership& newest) const {
  switch (newest.phase) {
    case MembershipPhase::failed:
      return newest.reason;
    case MembershipPhase::finished:
      return CommError("elastic", "a process joins before the run is complete", "it is complete",
                       "start the run again")
          .what();
    case MembershipPhase::expelled:
      return CommError("elastic", "every member answers the register of the run",
                       str("this one is out: ", one_line(newest.reason)),
                       "start the process again: it joins as a newcomer")
          .what();
    default:
      break;
  }
  std::string lost;
  for (const Departure& each : newest.departures) {
    if (each.reason.empty() || membership_.rank_of(each.member.id) < 0) continue;
    lost += str(lost.empty() ? "" : "; ", one_line(each.member.describe()), ": ",
                one_line(each.reason, 300));
  }
  return CommError("elastic", str("generation ", generation_.load(), " keeps its members"),
                   lost.empty() ? "others" : lost, "")
      .what();
}

Membership ElasticRun::wait_for_next(const CommError& why) {
  const std::string id = store_->self().id;
  auto deadline = steady_clock::now() + reason_patience;
  while (true) {
    const Membership now = store_->membership();
    if (now.is_over()) throw CommError(end_text(now));
    const bool newer = now.generation > generation_;
    if (leaves_ && (newer || now.phase == MembershipPhase::waiting)) {
      throw Interrupted(stop_signal(), "fit", signal_name(stop_signal()),
                        "the others go on without this process");
    }
    if (newer && now.phase == MembershipPhase::running && now.rank_of(id) >= 0) return now;
    if (now.phase == MembershipPhase::waiting) {
      deadline = steady_clock::now() + reason_patience;
      const auto first = std::find_if(now.members.begin(), now.members.end(),
                                      [&](const Member& each) { return now.is_member(each.id); });
      const bool tells = first != now.members.end() && first->id == id;
      if (tells && !std::exchange(told_waiting_, true)) {
        std::fprintf(stderr, "%s\n", one_line(now.reason, 4000).c_str());
      }
    }
    if (!newer && steady_clock::now() > deadline) throw why;
    store_->wait_for_change(now.revision, look_interval);
  }
}

void ElasticRun::enter(const Membership& membership) {
  const std::lock_guard lock(mutex_);
  membership_ = membership;
  generation_ = membership.generation;
  told_waiting_ = false;
}

void ElasticRun::finish() { store_->finish(generation_); }

void ElasticRun::close() {
  store_->set_on_change({});
  store_.reset();
}

}  // namespace tessera::detail
