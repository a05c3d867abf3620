#include <tessera/framework/cluster/coordination/failure_report.hpp>

#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <map>
#include <sstream>
#include <tuple>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/owner.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/cluster/internal/rank_text.hpp>

namespace tessera::detail {
namespace {

/// Maximum number of groups of ranks listed in a line.
constexpr size_t max_groups = 6;

std::string line(const std::string& expected, const std::string& received, const std::string& fix) {
  return CommError("coordination", expected, received, fix).what();
}

std::string seconds_text(double seconds) {
  std::ostringstream out;
  out << std::setprecision(3) << seconds << " s";
  return out.str();
}

std::string hex(uint64_t value) {
  std::ostringstream out;
  out << std::hex << std::setw(16) << std::setfill('0') << value;
  return out.str();
}

std::string note_suffix(const std::string& note) {
  return note.empty() ? "" : str("; it said: ", one_line(note, 2000));
}

/// Key that groups ranks: number of the last call, whether it is done, its text, the rank's state.
using CallPosition = std::tuple<uint64_t, bool, std::string, std::string>;

CallPosition call_position_of(const RankReport& rank) {
  if (rank.calls.empty()) return {0, false, "", rank.state};
  const CallRecord& last = rank.calls.back();
  return {last.number, last.done, call_text(last), rank.state};
}

std::string call_position_text(const CallPosition& position, std::span<const int> ranks) {
  const auto& [number, done, call, state] = position;
  const bool plural = ranks.size() > 1;
  const std::string names = rank_names(ranks);
  if (call.empty()) return str(names, plural ? " have" : " has", " made none");
  const std::string is = state.empty() ? (plural ? "are" : "is") : (plural ? "were" : "was");
  const std::string has = state.empty() ? (plural ? "have" : "has") : "had";
  return done ? str(names, " ", has, " done ", call) : str(names, " ", is, " in ", call);
}

Json call_json(const CallRecord& call) {
  Json json = Json::object();
  json["number"] = call.number;
  json["fingerprint"] = hex(call.hash);
  if (call.step >= 0) json["step"] = call.step + 1;
  json["text"] = one_line(call.text, 4096);
  json["done"] = call.done;
  return json;
}

Json rank_json(const RankReport& rank) {
  Json json = Json::object();
  json["rank"] = rank.peer.rank;
  json["pid"] = rank.peer.pid;
  json["host"] = one_line(rank.peer.host);
  json["state"] = rank.state.empty() ? "there" : rank.state;
  if (!rank.note.empty()) json["note"] = one_line(rank.note, 4096);
  json["calls"] = Json::array();
  for (const CallRecord& call : rank.calls) json["calls"].push_back(call_json(call));
  return json;
}

/// Sanitizes the job's name for use in a file name.
std::string file_part(const std::string& job) {
  std::string part;
  for (const char c : job.substr(0, 64)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    part += plain ? c : '_';
  }
  return part.empty() ? "run" : part;
}

std::string report_path(const std::string& job) {
  const char* report_dir = std::getenv("TESSERA_REPORT_DIR");
  const bool has = report_dir != nullptr && *report_dir != '\0';
  const std::filesystem::path folder = has ? report_dir : std::filesystem::temp_directory_path();
  return folder / str("tessera-", file_part(job), "-", ::getpid(), ".json");
}

}  // namespace

std::string call_text(const CallRecord& call) {
  const std::string step = call.step < 0 ? "" : str(", step ", call.step + 1);
  return str("call #", call.number, " (", one_line(call.text, 500), step, ")");
}

std::string last_calls(const std::vector<RankReport>& ranks) {
  std::map<CallPosition, std::vector<int>> groups;
  bool any = false;
  for (const RankReport& rank : ranks) {
    any = any || !rank.calls.empty();
    groups[call_position_of(rank)].push_back(rank.peer.rank);
  }
  if (!any) return "";
  std::vector<std::string> texts;
  for (const auto& [position, members] : groups) {
    if (texts.size() < max_groups) texts.push_back(call_position_text(position, members));
  }
  if (groups.size() > max_groups) texts.emplace_back("...");
  return str("Last calls: ", join(texts, "; "), ".");
}

std::string write_report(const std::string& job, const std::string& reason,
                         const std::vector<RankReport>& ranks) {
  Json json = Json::object();
  json["format"] = "tessera failure report";
  json["version"] = 1;
  json["job"] = one_line(job);
  json["reason"] = one_line(reason, 16384);
  json["ranks"] = Json::array();
  bool any = false;
  for (const RankReport& rank : ranks) {
    any = any || !rank.calls.empty();
    json["ranks"].push_back(rank_json(rank));
  }
  if (!any) return "";
  try {
    const std::string path = report_path(job);
    // Others may have planted a link with this name, as pids are predictable.
    write_file_atomically(path, to_json_text(json), Links::replaced);
    return path;
  } catch (const std::exception&) {
    // The reason matters more than the report.
    return "";
  }
}

std::string end_text(const std::string& job, const std::string& reason,
                     const std::vector<RankReport>& ranks) {
  const std::string calls = last_calls(ranks);
  std::string text = calls.empty() ? reason : str(reason, " ", calls);
  const std::string path = write_report(job, text, ranks);
  return path.empty() ? text : str(text, " Report: ", path);
}

std::string lost_text(const Peer& peer, const std::string& note) {
  return line("every rank stays until the end of the run",
              str(peer.describe(), " was lost: killed or crashed", note_suffix(note)),
              str("look at the output of rank ", peer.rank, " and start the run again"));
}

std::string lost_early_text(const Peer& peer) {
  return line("every rank waits until all have joined",
              str(peer.describe(), " was lost: killed, crashed or ended"),
              str("look at the output of rank ", peer.rank, " and start the run again"));
}

std::string server_lost_text() { return lost_early_text({0, ::getpid(), host_name(), ""}); }

std::string unresponsive_text(const Peer& peer, double seconds) {
  return line("every rank stays until the end of the run",
              str(peer.describe(), " did not answer for ", seconds_text(seconds),
                  ": stopped or unreachable"),
              str("check that process and its network, and start the run again"));
}

std::string invalid_frame_text(const Peer& peer, const std::string& received) {
  return line("all processes of a run must use the same build",
              str(peer.describe(), " sent ", received),
              "start the same build everywhere, and let no other program use the port");
}

std::string changed_frame_text(const Peer& peer) {
  return line("frames between processes arrive as they were sent",
              str("a frame of ", peer.describe(),
                  " was changed on the way, or repeated, left out or added"),
              "find who can change packets between these hosts, and start the run again");
}

std::string left_text(const Peer& peer, const std::string& note, const std::string& waiting) {
  return line("every rank takes part until the end of the run",
              str(peer.describe(), " has left while ", waiting, note_suffix(note)),
              str("look at the output of rank ", peer.rank));
}

std::string late_text(const std::vector<Peer>& peers, double seconds, const std::string& waiting) {
  std::vector<std::string> names;
  for (const Peer& peer : peers) names.push_back(peer.describe());
  return line(
      "every rank must reach the calls in which others wait",
      str(join(names, ", "), " did not come within ", seconds_text(seconds), " while ", waiting),
      "find what delays it, or raise the timeout if its work takes that long");
}

std::string stuck_text(double seconds, const std::string& waiting) {
  return line("a call must complete once every rank has made it",
              str(waiting, " for ", seconds_text(seconds), ", and no rank is behind"),
              "check the network between these hosts, or raise the timeout if that call takes "
              "that long");
}

std::string differ_text(int first_rank, const CallRecord& first, int second_rank,
                        const CallRecord& second) {
  const bool same = first.text == second.text;
  const auto text = [&](const CallRecord& call) {
    return str(one_line(call.text, 500), same ? str(" (fingerprint ", hex(call.hash), ")") : "");
  };
  return line("every rank makes the same calls in the same order",
              str("call #", first.number, " of rank ", first_rank, " is ", text(first),
                  ", of rank ", second_rank, " ", text(second)),
              "run the same program with the same arguments on every rank, without communication "
              "in code that only some ranks run");
}

}  // namespace tessera::detail
