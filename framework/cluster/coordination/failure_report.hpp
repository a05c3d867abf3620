#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tessera/framework/cluster/coordination/coordination.hpp>

namespace tessera::detail {

/// "call #118 (all_reduce of hidden/kernel on batch, step 7)", the first step being 1.
std::string call_text(const CallRecord& call);

/// What is known of a rank when the run ends.
struct RankReport {
  Peer peer;
  /// "" for one that is there, else how it went: "lost", "left", "silent".
  std::string state = {};
  std::string note = {};
  /// The last calls, oldest first.
  std::vector<CallRecord> calls = {};
};

/// Where every rank is, the ones behind first: "Last calls: rank 3 is in call #118 (...); ranks
/// 0-2 are in call #119 (...)."; empty if no rank ever made one.
std::string last_calls(const std::vector<RankReport>& ranks);

/// Writes the last calls of all ranks as JSON into TESSERA_REPORT_DIR or the folder for temporary
/// files. Returns its path; empty if it cannot be written or there are no calls.
std::string write_report(const std::string& job, const std::string& reason,
                         const std::vector<RankReport>& ranks);

/// Reason, last calls and the path of the report that it writes, on one line.
std::string end_text(const std::string& job, const std::string& reason,
                     const std::vector<RankReport>& ranks);

/// Why a run is over, as one line each; `waiting` says who waits where.
std::string lost_text(const Peer& peer, const std::string& note);
std::string lost_early_text(const Peer& peer);
/// Of this process, rank 0, that does not even reach itself: there is no run to wait for.
std::string hub_lost_text();
std::string silent_text(const Peer& peer, double seconds);
std::string garbled_text(const Peer& peer, const std::string& received);
std::string left_text(const Peer& peer, const std::string& note, const std::string& waiting);
std::string late_text(const std::vector<Peer>& peers, double seconds, const std::string& waiting);
std::string stuck_text(double seconds, const std::string& waiting);
std::string differ_text(int first_rank, const CallRecord& first, int second_rank,
                        const CallRecord& second);

}  // namespace tessera::detail
