#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::detail {

/// The status of a process at the end of a step; the most severe one of all processes wins.
/// `regroup`: the members of another generation of an elastic run are to meet; `stop`: training
/// ends; `save`: a signal asks to save and exit.
enum class StatusLevel : int64_t {
  ok = 0,
  regroup = 1,
  stop = 2,
  save = 3,
  non_finite = 4,
  error = 5
};

/// The status of one step. Facts that only one process knows (a bad label, a failed read, a signal,
/// a callback's request to stop) are raised here; exchange() gives every process the same status,
/// so that all act in the same step. It is one small all-reduce, which also checks that all made
/// the same collectives and compares their next batches; texts follow only if something is wrong.
class StepStatus {
 public:
  StatusLevel status() const { return status_; }
  /// The lowest rank that raised the status.
  int rank() const { return rank_; }
  /// The reason of that rank; equal on all processes after an exchange, except for `stop` and
  /// `regroup`, whose reasons are not exchanged.
  const std::string& reason() const { return reason_; }
  /// The reasons of all ranks for this status, by rank; empty for ranks that have none.
  const std::vector<std::string>& reasons() const { return reasons_; }
  /// "an error on rank 1: [part-2] …".
  std::string error_text() const;
  /// Sets the status if `status` is more severe than the current one.
  void raise(StatusLevel status, const std::string& reason);

  /// Sets this process's next batch: its number of rows (0 at the end of the data), and a hash of
  /// its signature, which must be equal on all processes.
  void set_next_batch(int64_t rows, size_t signature);
  /// The minimum of the rows of all processes.
  int64_t min_rows() const { return min_rows_; }
  /// The maximum of the rows of all processes.
  int64_t max_rows() const { return max_rows_; }
  /// Whether the signatures of the next batches are equal.
  bool same_signature() const { return min_signature_ == max_signature_; }

  /// Sets the status to the most severe one of all processes of the mesh. Collective. Throws
  /// CommError, on every rank, if the ranks did not make the same collectives.
  void exchange(const Mesh& mesh);
  void clear() { *this = StepStatus(); }

 private:
  StatusLevel status_ = StatusLevel::ok;
  int rank_ = 0;
  std::string reason_;
  std::vector<std::string> reasons_;
  int64_t min_rows_ = 0, max_rows_ = 0;
  int64_t min_signature_ = 0, max_signature_ = 0;
};

/// Groups the ranks by text: "8 on ranks 0 and 2; 7 on rank 1".
std::string group_by_text(const std::vector<std::string>& texts);

}  // namespace tessera::detail
