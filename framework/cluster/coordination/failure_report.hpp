#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tessera/framework/cluster/coordination/coordination.hpp>

namespace tessera::detail {

/// Returns "call #118 (all_reduce of hidden/kernel on batch, step 7)"; steps count from 1.
std::string call_text(const CallRecord& call);

/// State of a rank at the end of the run.
struct RankReport {
  Peer peer;
  /// empty: present; otherwise "lost", "left" or "silent"
  std::string state = {};
  std::string note = {};
  /// last calls, oldest first
  std::vector<CallRecord> calls = {};
};

/// Describes the last call of every rank, the ones furthest behind first: "Last calls: rank 3 is in
/// call #118 (...); ranks 0-2 are in call #119 (...)."; empty if no rank ever made one.
std::string last_calls(const std::vector<RankReport>& ranks);

/// Writes the last calls of all ranks as JSON into TESSERA_REPORT_DIR or the folder for temporary
/// files. Returns the path; empty if it cannot be written or there are no calls.
std::string write_report(const std::string& job, const std::string& reason,
                         const std::vector<RankReport>& ranks);

/// Writes the report; returns the reason, the last calls and the report's path on one line.
std::string end_text(const std::string& job, const std::string& reason,
                     const std::vector<RankReport>& ranks);

/// Return the one-line reason why a run is over; `waiting` says which ranks wait, and where.
std::string lost_text(const Peer& peer, const std::string& note);
std::string lost_early_text(const Peer& peer);
/// Returns the reason for a rank 0 that could not even reach its own server.
std::string server_lost_text();
std::string unresponsive_text(const Peer& peer, double seconds);
std::string invalid_frame_text(const Peer& peer, const std::string& received);
/// Returns the reason for a frame of the peer that was not received as it was sent.
std::string changed_frame_text(const Peer& peer);
std::string left_text(const Peer& peer, const std::string& note, const std::string& waiting);
std::string late_text(const std::vector<Peer>& peers, double seconds, const std::string& waiting);
std::string stuck_text(double seconds, const std::string& waiting);
std::string differ_text(int first_rank, const CallRecord& first, int second_rank,
                        const CallRecord& second);

}  // namespace tessera::detail
