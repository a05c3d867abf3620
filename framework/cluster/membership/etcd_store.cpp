#include <tessera/framework/cluster/membership/etcd_store.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/base64.hpp>
#include <tessera/framework/base/internal/hex.hpp>
#include <tessera/framework/base/internal/owner.hpp>
#include <tessera/framework/base/internal/secret.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/internal/free_port.hpp>

namespace tessera::detail {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

constexpr const char* root = "/tessera/";
/// How often all keys are read although the watch has reported nothing.
constexpr auto read_interval = 1s;
/// How long after one another the members propose, so that mostly the first does.
constexpr auto turn = 20ms;
constexpr size_t max_turns = 10;
/// etcd's limit of comparisons in a transaction is 128.
constexpr size_t max_compared = 100;
/// How long the end of a run can be read.
constexpr int64_t end_seconds = 60;
/// How long etcd may be out before a member gives up.
constexpr auto max_outage = 5min;
constexpr auto outage_pause = 200ms;
constexpr auto finish_wait = 20s;
constexpr size_t max_join_tries = 100;
constexpr int grpc_not_found = 5;

constexpr const char* lease_ended =
    "its lease in etcd ended: killed, stopped, or cut off from etcd";

std::string text_of(const Json& json, const char* name) {
  return json.is_object() && json.contains(name)
             ? json_as<std::string>(json.at(name), JsonPath("etcd").key(name))
             : "";
}

/// Returns one of etcd's 64-bit numbers, which JSON has as texts; 0 if it is left out.
int64_t etcd_number(const Json& json, const char* name) {
  const std::string text = text_of(json, name);
  try {
    return text.empty() ? 0 : std::stoll(text);
  } catch (const std::exception&) {
    throw CommError("elastic", "etcd numbers its revisions", in_quotes(text), "check the URL");
  }
}

std::string bytes_of_field(const Json& json, const char* name) {
  return from_base64(text_of(json, name)).value_or("");
}

std::string check_job_name(const std::string& job) {
  if (!job.empty() && job.size() <= 200 && job.find('/') == job.npos) return job;
  throw ConfigError("TESSERA_JOB", "an elastic run in etcd has a name, without \"/\"",
                    job.empty() ? "none" : in_quotes(job),
                    "set TESSERA_JOB to the same new name for all processes of a run");
}

Json put(const std::string& key, const std::string& value, const std::string& lease) {
  Json fields = {{"key", to_base64(key)}, {"value", to_base64(value)}};
  if (!lease.empty()) fields["lease"] = lease;
  return {{"request_put", fields}};
}

Json compare_to(const std::string& key, const char* target, const char* field, int64_t revision,
                const char* result) {
  return {{"key", to_base64(key)},
          {"target", target},
          {"result", result},
          {field, std::to_string(revision)}};
}

Json unchanged_since(const std::string& key, int64_t revision) {
  return compare_to(key, "MOD", "mod_revision", revision, "EQUAL");
}

Json exists_in_etcd(const std::string& key) {
  return compare_to(key, "CREATE", "create_revision", 0, "GREATER");
}

}  // namespace

EtcdStore::EtcdStore(const MembershipOptions& options)
    : options_(options),
      prefix_(str(root, check_job_name(options.job), "/")),
      gateway_(etcd_access("TESSERA_MEMBERS", options.where, options.environment,
                           options.access.insecure)) {
  check_rules("elastic", options_.rules);
  const Time until = steady_clock::now() + options_.connect_timeout;
  for (size_t tries = 1;; ++tries) {
    try {
      join();
      break;
    } catch (const EtcdUnavailable&) {
      if (steady_clock::now() + outage_pause >= until || tries >= max_join_tries) throw;
    }
    std::this_thread::sleep_for(outage_pause);
  }
  joined_ = steady_clock::now();
  thread_ = std::thread([this] { run(); });
}

EtcdStore::~EtcdStore() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  gateway_.hurry(500ms);
  gateway_.wake();
  thread_.join();
}

void EtcdStore::join() {
  gateway_.check_version();
  lease_ = grant(std::max<int64_t>(2, options_.lease.count()));
  self_ = {new_member_id(), host_name(), ::getpid(), options_.address, free_port()};
  if (self_.address.empty()) self_.address = gateway_.own_ip();
  Snapshot snapshot = read();
  if (snapshot.state_revision == 0) {
    // Whoever is first sets the rules; if somebody was faster, these are to be compared.
    transact(Json::array({unchanged_since(key("state"), 0)}),
             Json::array({put(key("state"), seal(key("state"), state_text({})), "")}));
    snapshot = read();
  }
  if (snapshot.membership.is_over()) {
    throw ConfigError("elastic", str("run ", in_quotes(options_.job), " in etcd is not over"),
                      str("it ended less than ", end_seconds, " s ago"),
                      "set TESSERA_JOB to another name for another run");
  }
  put_self(false);
  news_.update(snapshot.membership);
}

std::string EtcdStore::grant(int64_t seconds) {
  return text_of(gateway_.post("/v3/lease/grant", {{"TTL", std::to_string(seconds)}}), "ID");
}

bool EtcdStore::transact(const Json& compare, const Json& success) {
  const Json reply = gateway_.post("/v3/kv/txn", {{"compare", compare}, {"success", success}});
  return reply.is_object() && reply.value("succeeded", false);
}

bool EtcdStore::put_self(bool leaving) {
  const std::string name = key("members/" + self_.id);
  const std::string text = to_json_text({{"member", to_json(self_)}, {"leaving", leaving}}, -1);
  // A member that was expelled does not come back by leaving.
  const Json compare =
      leaving ? Json::array({exists_in_etcd(name)}) : Json::array({unchanged_since(name, 0)});
  return transact(compare, Json::array({put(name, seal(name, text), lease_)}));
}

std::string EtcdStore::state_text(const Membership& membership) const {
  const MembershipRules& rules = options_.rules;
  return to_json_text({{"min_processes", rules.min_processes},
                       {"max_processes", rules.max_processes},
                       {"expected", rules.expected},
                       {"membership", to_json(membership)}},
                      -1);
}

std::string EtcdStore::seal(const std::string& key, const std::string& text) const {
  Json value = {{"text", text}};
  const std::string& secret = options_.access.secret;
  if (!secret.empty()) value["proof"] = to_hex(proof_of(secret, {"elastic: etcd", key, text}));
  return to_json_text(value, -1);
}

std::optional<std::string> EtcdStore::open(const std::string& key, const std::string& value) const {
  try {
    const Json json = parse_json(value, "etcd");
    const std::string text = text_of(json, "text");
    const std::string& secret = options_.access.secret;
    if (secret.empty() || same_secret(text_of(json, "proof"),
                                      to_hex(proof_of(secret, {"elastic: etcd", key, text})))) {
      return text;
    }
  } catch (const ConfigError&) {
    // Somebody else's value.
  }
  return std::nullopt;
}

EtcdStore::Snapshot EtcdStore::read() {
  std::string end = prefix_;
  end.back() = static_cast<char>(end.back() + 1);
  const Json reply =
      gateway_.post("/v3/kv/range", {{"key", to_base64(prefix_)}, {"range_end", to_base64(end)}});
  Snapshot snapshot;
  const JsonPath path("etcd");
  if (!reply.is_object() || !reply.contains("kvs")) return snapshot;
  for (const Json& entry : json_as<std::vector<Json>>(reply["kvs"], path.key("kvs"))) {
    read_key(entry, snapshot);
  }
  std::sort(snapshot.members.begin(), snapshot.members.end(), [](const Stored& a, const Stored& b) {
    return std::pair(a.created, a.member.id) < std::pair(b.created, b.member.id);
  });
  return snapshot;
}

void EtcdStore::read_key(const Json& entry, Snapshot& snapshot) {
  const std::string name = bytes_of_field(entry, "key");
  const std::string rest = name.substr(std::min(name.size(), prefix_.size()));
  const std::optional<std::string> text = open(name, bytes_of_field(entry, "value"));
  if (rest == "state") {
    if (!text) {
      throw ConfigError(
          "elastic", str("all processes of run ", in_quotes(options_.job), " must have one secret"),
          "its membership in etcd is from one with another secret",
          "give all of them the same TESSERA_SECRET_FILE or TESSERA_SECRET");
    }
    snapshot.state_revision = etcd_number(entry, "mod_revision");
    return read_state(*text, snapshot);
  }
  if (!text) {
    if (!std::exchange(warned_of_secret_, true)) {
      say(str("[elastic] ignored ", in_quotes(name), " in etcd: it has another secret"));
    }
    return;
  }
  const JsonPath path(name);
  if (rest.starts_with("members/")) {
    const Json json = parse_json(*text, name);
    JsonObject object(json, path);
    Stored stored;
    stored.member = member_from(object.take<Json>("member"), path.key("member"));
    stored.leaving = object.take<bool>("leaving");
    stored.created = etcd_number(entry, "create_revision");
    stored.lease = text_of(entry, "lease");
    snapshot.members.push_back(std::move(stored));
  } else if (rest.starts_with("expelled/")) {
    snapshot.expelled.emplace(rest.substr(rest.find('/') + 1), *text);
  }
}

void EtcdStore::read_state(const std::string& text, Snapshot& snapshot) {
  const JsonPath path("state in etcd");
  const Json json = parse_json(text, path.text());
  JsonObject object(json, path);
  const auto min = object.take<int>("min_processes");
  const auto max = object.take<int>("max_processes");
  const auto expected = object.take<int>("expected");
  snapshot.membership = membership_from(object.take<Json>("membership"), path.key("membership"));
  object.finish();
  const MembershipRules& rules = options_.rules;
  if (min == rules.min_processes && max == rules.max_processes && expected == rules.expected) {
    return;
  }
  throw ConfigError("elastic",
                    str("all processes of run ", in_quotes(options_.job), " have the same limits"),
                    str(rules.expected, " of ", rules.min_processes, ":", rules.max_processes,
                        " here, ", expected, " of ", min, ":", max, " in etcd"),
                    "start all with the same limits, or a new run under another TESSERA_JOB");
}

void EtcdStore::run() {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (stop_) break;
    }
    Time until = steady_clock::now() + outage_pause;
    try {
      step();
      outage_since_.reset();
      warned_ = false;
      until = std::min(next_alive_, next_read_);
      if (change_seen_) until = std::min(until, steady_clock::now() + turn);
    } catch (const std::exception& error) {
      handle_outage(error.what());
    }
    // Its lease ends by itself, as the others may still have to read the note about it.
    if (news_.newest().phase == MembershipPhase::expelled) return;
    gateway_.wait(until);
  }
  try {
    bool asked = false;
    {
      const std::lock_guard lock(mutex_);
      asked = !commands_.empty();
    }
    // What was said just before the end counts, such as that this process leaves.
    if (asked) step();
    gateway_.post("/v3/lease/revoke", {{"ID", lease_}});
  } catch (const std::exception&) {
    // It ends by itself soon.
  }
}

void EtcdStore::handle_outage(const std::string& what) {
  const Time now = steady_clock::now();
  if (!outage_since_) outage_since_ = now;
  // The run goes on without etcd, which is needed for changes only.
  if (now - *outage_since_ > 2s && !std::exchange(warned_, true)) {
    say(str("Warning: members cannot change at the moment: ", what));
  }
  if (now - *outage_since_ > max_outage) news_.expel(str("etcd has failed for minutes: ", what));
}

void EtcdStore::step() {
  if (steady_clock::now() >= next_alive_) keep_alive();
  gateway_.watch(prefix_);
  const Snapshot snapshot = read();
  next_read_ = steady_clock::now() + read_interval;
  const bool present = std::any_of(snapshot.members.begin(), snapshot.members.end(),
                                   [&](const Stored& each) { return each.member.id == self_.id; });
  if (snapshot.state_revision > 0) news_.update(snapshot.membership);
  if (news_.newest().is_over()) return run_commands(snapshot);
  if (!present) {
    const auto reason = snapshot.expelled.find(self_.id);
    return news_.expel(reason == snapshot.expelled.end() ? lease_ended : reason->second);
  }
  run_commands(snapshot);
  decide(snapshot);
}

void EtcdStore::keep_alive() {
  const Json reply = gateway_.post("/v3/lease/keepalive", {{"ID", lease_}});
  next_alive_ = steady_clock::now() + std::chrono::milliseconds(options_.lease) / 4;
  // Without a lease there is no key, which step() finds.
  if (reply.is_object() && reply.contains("error")) {
    throw EtcdUnavailable("elastic", "etcd renews a lease", to_json_text(reply["error"], -1),
                          "look at etcd's log");
  }
}

Presence EtcdStore::presence_of(const Snapshot& snapshot) const {
  const Time now = steady_clock::now();
  Presence presence;
  std::map<std::string, const Stored*> stored;
  for (const Stored& each : snapshot.members) {
    stored[each.member.id] = &each;
    if (!each.leaving) presence.present.push_back(each.member);
  }
  const auto& known = snapshot.membership.departures;
  for (const Member& each : snapshot.membership.members) {
    const auto found = stored.find(each.id);
    const bool left = found != stored.end() && found->second->leaving;
    const bool noted = std::any_of(known.begin(), known.end(), [&](const Departure& departure) {
      return departure.member.id == each.id;
    });
    if ((found != stored.end() && !left) || noted) continue;
    const auto reason = snapshot.expelled.find(each.id);
    presence.departures.push_back({each, 0,
                                   left                                ? ""
                                   : reason != snapshot.expelled.end() ? reason->second
                                                                       : lease_ended});
  }
  presence.forming_over = now - joined_ >= options_.rules.forming_time;
  presence.waiting_over = waiting_since_ && now - *waiting_since_ >= options_.rules.waiting_time;
  return presence;
}

void EtcdStore::decide(const Snapshot& snapshot) {
  const Time now = steady_clock::now();
  if (snapshot.membership.phase != MembershipPhase::waiting) {
    waiting_since_.reset();
  } else if (!waiting_since_) {
    waiting_since_ = now;
  }
  const Presence presence = presence_of(snapshot);
  const std::optional<Membership> next =
      next_membership(snapshot.membership, presence, options_.rules);
  if (!next) return change_seen_.reset();
  if (!change_seen_) change_seen_ = now;
  const auto self = std::find(presence.present.begin(), presence.present.end(), self_);
  const auto before =
      std::min<size_t>(max_turns, static_cast<size_t>(self - presence.present.begin()));
  if (now < *change_seen_ + options_.rules.settle_time + before * turn) return;
  change_seen_.reset();
  propose(snapshot, *next, "");
  // Whoever proposed, the result is to be read.
  gateway_.wake();
}

bool EtcdStore::propose(const Snapshot& snapshot, const Membership& next,
                        const std::string& lease) {
  Json compare = Json::array({unchanged_since(key("state"), snapshot.state_revision)});
  for (const Stored& each : snapshot.members) {
    if (compare.size() > max_compared || next.phase != MembershipPhase::running) break;
    if (next.rank_of(each.member.id) < 0) continue;
    compare.push_back(compare_to(key("members/" + each.member.id), "CREATE", "create_revision",
                                 each.created, "EQUAL"));
  }
  const std::string value = seal(key("state"), state_text(next));
  // The end of a run does not stay for ever.
  const std::string kept = lease.empty() && next.is_over() ? grant(end_seconds) : lease;
  return transact(compare, Json::array({put(key("state"), value, kept)}));
}

bool EtcdStore::expel(const Snapshot& snapshot, uint64_t generation, const std::string& id,
                      const std::string& reason) {
  const Membership& now = snapshot.membership;
  const auto each = std::find_if(snapshot.members.begin(), snapshot.members.end(),
                                 [&](const Stored& stored) { return stored.member.id == id; });
  if (now.phase != MembershipPhase::running || now.generation != generation ||
      now.rank_of(id) < 0 || now.rank_of(self_.id) < 0 || each == snapshot.members.end()) {
    return true;  // about an earlier generation, or known already
  }
  const std::string member = key("members/" + id);
  const std::string note = key("expelled/" + id);
  // The note goes with the lease of the expelled process, which reads it if it comes back in time.
  const Json success = Json::array({put(note, seal(note, reason), each->lease),
                                    {{"request_delete_range", {{"key", to_base64(member)}}}}});
  return transact(
      Json::array({unchanged_since(key("state"), snapshot.state_revision), exists_in_etcd(member)}),
      success);
}

void EtcdStore::enqueue(Command command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  gateway_.wake();
}

void EtcdStore::run_commands(const Snapshot& snapshot) {
  std::deque<Command> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  while (!commands.empty()) {
    bool done = false;
    try {
      done = commands.front()(snapshot);
    } catch (const EtcdRefusal& error) {
      // Such as a lease that has ended, so that what was asked for has happened.
      if (error.code() != grpc_not_found) throw;
      done = true;
    } catch (const EtcdUnavailable&) {
      const std::lock_guard lock(mutex_);
      commands_.insert(commands_.begin(), commands.begin(), commands.end());
      throw;
    }
    if (!done) {
      // Something has changed meanwhile: again, with what is there now.
      const std::lock_guard lock(mutex_);
      commands_.push_back(std::move(commands.front()));
      gateway_.wake();
    }
    commands.pop_front();
  }
}

void EtcdStore::report_lost(uint64_t generation, const std::string& id, const std::string& reason) {
  enqueue([this, generation, id, text = one_line(reason, 4000)](const Snapshot& snapshot) {
    return expel(snapshot, generation, id, text);
  });
}

void EtcdStore::leave() {
  enqueue([this](const Snapshot&) {
    put_self(true);
    return true;
  });
}

bool EtcdStore::finish(uint64_t generation) {
  enqueue([this, generation](const Snapshot& snapshot) {
    const Membership& now = snapshot.membership;
    if (now.phase != MembershipPhase::running || now.generation != generation ||
        now.rank_of(self_.id) < 0) {
      return true;
    }
    Membership next = now;
    ++next.revision;
    next.phase = MembershipPhase::finished;
    const bool done = propose(snapshot, next, "");
    gateway_.wake();
    return done;
  });
  const Membership last = news_.wait_for_end_of(generation, finish_wait);
  return last.phase == MembershipPhase::finished && last.generation == generation;
}

void EtcdStore::say(const std::string& line) const {
  if (options_.say) return options_.say(line);
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace tessera::detail
