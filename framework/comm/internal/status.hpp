#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::detail {

/// What a process has to tell the others at the end of a step; the gravest wins. `stop`: training
/// has come to its end; `save`: a signal asks to save and leave.
enum class StatusLevel : int64_t { ok = 0, stop = 1, save = 2, non_finite = 3, error = 4 };

/// The status word of one step. Facts that only one process knows (a bad label, a failed read, a
/// signal, a callback's wish to stop) go in here; exchange() makes every process see the same one,
/// so that all act in the same step. It is one small all-reduce, which also tells whether all made
/// the same collectives and how many rows each has next; texts follow only if something is wrong.
class StepStatus {
 public:
  StatusLevel status() const { return status_; }
  /// The lowest rank that raised the status, and why; the same everywhere after an exchange, but
  /// for `stop`, which takes no reason.
  int rank() const { return rank_; }
  const std::string& reason() const { return reason_; }
  /// The reasons of all ranks for this status, by rank; empty texts of those that have none.
  const std::vector<std::string>& reasons() const { return reasons_; }
  /// "an error on rank 1: [part-2] …", of a status with a reason.
  std::string error_text() const;
  /// Keeps the graver of the present and the given status.
  void raise(StatusLevel status, const std::string& reason);

  /// Says what this process has for the next step: how many rows, 0 when its data have ended, and a
  /// hash of what else has to be equal everywhere.
  void set_next_batch(int64_t rows, size_t form);
  /// The rows of the process with the fewest, and with the most; whether what else has to be is
  /// equal.
  int64_t min_rows() const { return min_rows_; }
  int64_t max_rows() const { return max_rows_; }
  bool same_form() const { return min_form_ == max_form_; }

  /// The gravest status of all processes of the mesh. Collective. Throws CommError, on every rank,
  /// where they did not make the same collectives.
  void exchange(const Mesh& mesh);
  void clear() { *this = StepStatus(); }

 private:
  StatusLevel status_ = StatusLevel::ok;
  int rank_ = 0;
  std::string reason_;
  std::vector<std::string> reasons_;
  int64_t min_rows_ = 0, max_rows_ = 0;
  int64_t min_form_ = 0, max_form_ = 0;
};

/// The word of all processes after what may fail, or raise something, on one of them alone. What it
/// throws here is an error for the others, and thrown on after the exchange. Collective.
StepStatus all_reduce_status(const Mesh& mesh, const std::function<void(StepStatus&)>& local);

/// What each rank said, equal texts together: "8 on ranks 0 and 2; 7 on rank 1".
std::string said_by(const std::vector<std::string>& texts);

}  // namespace tessera::detail
