#include <tessera/framework/cluster/membership/generation.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

constexpr std::array<const char*, 5> phase_names = {"forming", "running", "waiting", "finished",
                                                    "failed"};

/// Maximum number of departures that an error names, and of bytes of their reasons.
constexpr size_t max_named = 4;
constexpr size_t max_reason_in_text = 300;

bool contains(const std::vector<Member>& members, const std::string& id) {
  return std::any_of(members.begin(), members.end(),
                     [&](const Member& each) { return each.id == id; });
}

/// Returns the members of the next generation: the old ones that are left, so that state stays
/// where it is and the first member always has some, then newcomers.
std::vector<Member> next_members(const Membership& last, const Presence& presence,
                                 const MembershipRules& rules) {
  std::vector<Member> members;
  for (const Member& each : last.members) {
    if (contains(presence.present, each.id)) members.push_back(each);
  }
  for (const Member& each : presence.present) {
    if (std::ssize(members) >= rules.max_processes) break;
    if (!contains(last.members, each.id)) members.push_back(each);
  }
  return members;
}

std::string count_text(size_t count) { return count == 1 ? "1 process" : str(count, " processes"); }

std::string too_few_text(const Presence& presence, size_t left, const MembershipRules& rules,
                         bool over) {
  std::string received = count_text(left);
  for (size_t i = 0; i < std::min(presence.departures.size(), max_named); ++i) {
    const Departure& each = presence.departures[i];
    received +=
        str("; ", one_line(each.member.describe()), ": ",
            each.reason.empty() ? std::string("left") : one_line(each.reason, max_reason_in_text));
  }
  const char* const fix = over ? "start more processes, or allow fewer (min_processes)"
                               : "start processes, which are taken in while the run waits";
  return ConfigError(
             "elastic",
             str("the run needs at least ", count_text(static_cast<size_t>(rules.min_processes))),
             received, fix)
      .what();
}

bool same_members(const std::vector<Member>& one, const std::vector<Member>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const Member& a, const Member& b) { return a.id == b.id; });
}

void add_departures(Membership& next, const Presence& presence) {
  next.departures.insert(next.departures.end(), presence.departures.begin(),
                         presence.departures.end());
  if (next.departures.size() > max_departures) {
    next.departures.erase(next.departures.begin(),
                          next.departures.end() - static_cast<std::ptrdiff_t>(max_departures));
  }
  if (next.phase != MembershipPhase::running) return;
  for (Departure& each : next.departures) {
    if (each.generation == 0) each.generation = next.generation;
  }
}

Json departure_json(const Departure& departure) {
  return {{"member", to_json(departure.member)},
          {"generation", departure.generation},
          {"reason", departure.reason}};
}

Departure departure_from(const Json& json, const JsonPath& path) {
  JsonObject object(json, path);
  Departure departure;
  departure.member = member_from(object.take<Json>("member"), path.key("member"));
  departure.generation = object.take<uint64_t>("generation");
  departure.reason = object.take<std::string>("reason");
  object.finish();
  return departure;
}

MembershipPhase phase_from(const std::string& name, const JsonPath& path) {
  const auto found = std::find(phase_names.begin(), phase_names.end(), name);
  if (found == phase_names.end()) json_fail(name, path, "a phase of a membership");
  return static_cast<MembershipPhase>(found - phase_names.begin());
}

}  // namespace

std::string Member::describe() const { return str("pid ", pid, " on ", host); }

int Membership::rank_of(const std::string& id) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Member& each) { return each.id == id; });
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

bool Membership::is_member(const std::string& id) const {
  return rank_of(id) >= 0 &&
         std::none_of(departures.begin(), departures.end(),
                      [&](const Departure& each) { return each.member.id == id; });
}

void check_rules(const std::string& where, const MembershipRules& rules) {
  if (rules.min_processes >= 1 && rules.min_processes <= rules.expected &&
      rules.expected <= rules.max_processes) {
    return;
  }
  throw ConfigError(where,
                    "an elastic run starts with at least its minimum and at most its maximum of "
                    "processes, and needs at least 1",
                    str(rules.expected, " for ", rules.min_processes, ":", rules.max_processes),
                    "write for example -n 4 --elastic 2:4");
}

std::optional<Membership> next_membership(const Membership& last, const Presence& presence,
                                          const MembershipRules& rules) {
  if (last.is_over()) return std::nullopt;
  std::vector<Member> members = next_members(last, presence, rules);
  const bool enough = std::ssize(members) >= rules.min_processes;
  const bool forming = last.phase == MembershipPhase::forming;
  if (forming && std::ssize(members) < rules.expected && !presence.forming_over) {
    return std::nullopt;
  }
  if (!forming && same_members(last.members, members)) return std::nullopt;
  const bool over =
      !enough && (forming || presence.waiting_over || rules.waiting_time.count() == 0);
  const bool waits_on = !enough && !over && last.phase == MembershipPhase::waiting;
  if (waits_on && presence.departures.empty()) return std::nullopt;
  Membership next = last;
  ++next.revision;
  next.reason.clear();
  if (enough) {
    ++next.generation;
    next.phase = MembershipPhase::running;
  } else {
    next.phase = over ? MembershipPhase::failed : MembershipPhase::waiting;
    next.reason = too_few_text(presence, members.size(), rules, over);
  }
  // A generation's list never changes: one that waits keeps it.
  if (enough) next.members = std::move(members);
  add_departures(next, presence);
  return next;
}

Json to_json(const Member& member) {
  return {{"id", member.id},
          {"host", member.host},
          {"pid", member.pid},
          {"address", member.address},
          {"port", member.port}};
}

Json to_json(const Membership& membership) {
  Json members = Json::array();
  for (const Member& each : membership.members) members.push_back(to_json(each));
  Json departures = Json::array();
  for (const Departure& each : membership.departures) departures.push_back(departure_json(each));
  return {{"revision", membership.revision},
          {"generation", membership.generation},
          {"phase", phase_names.at(static_cast<size_t>(membership.phase))},
          {"reason", membership.reason},
          {"members", members},
          {"departures", departures}};
}

Member member_from(const Json& json, const JsonPath& path) {
  JsonObject object(json, path);
  Member member;
  member.id = object.take<std::string>("id");
  member.host = object.take<std::string>("host");
  member.pid = object.take<int64_t>("pid");
  member.address = object.take<std::string>("address");
  member.port = object.take<int>("port");
  object.finish();
  constexpr size_t max_name = 256;
  if (member.id.empty() || member.id.size() > max_name || member.host.size() > max_name ||
      member.address.size() > max_name || member.port < 0 || member.port > 65535) {
    json_fail(json, path, "a member with an id, names of at most 256 bytes and a port");
  }
  return member;
}

Membership membership_from(const Json& json, const JsonPath& path) {
  JsonObject object(json, path);
  Membership membership;
  membership.revision = object.take<uint64_t>("revision");
  membership.generation = object.take<uint64_t>("generation");
  membership.phase = phase_from(object.take<std::string>("phase"), path.key("phase"));
  membership.reason = object.take<std::string>("reason");
  const auto members = object.take<std::vector<Json>>("members");
  for (size_t i = 0; i < members.size(); ++i) {
    membership.members.push_back(member_from(members[i], path.key("members").index(i)));
  }
  const auto departures = object.take<std::vector<Json>>("departures");
  for (size_t i = 0; i < departures.size(); ++i) {
    membership.departures.push_back(departure_from(departures[i], path.key("departures").index(i)));
  }
  object.finish();
  return membership;
}

}  // namespace tessera::detail
