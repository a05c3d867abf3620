#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <tessera/framework/mesh/mesh.hpp>

namespace tessera {

/// What a process has to tell the others at the end of a step; the gravest wins.
enum class StepStatus : int64_t { ok = 0, save = 1, stop = 2, non_finite = 3, error = 4 };

/// The status word of one step. Facts that only one process knows (a bad label, a failed read, a
/// signal, a callback's wish to stop) go in here; exchange() makes every process see the same one,
/// so that all act in the same step.
class StatusWord {
 public:
  StepStatus status() const { return status_; }
  /// Rank that raised the status, and its reason where that rank is this one.
  int rank() const { return rank_; }
  const std::string& reason() const { return reason_; }
  /// Keeps the graver of the present and the given status.
  void raise(StepStatus status, const std::string& reason);
  /// Maximum over all processes of the mesh. Collective.
  void exchange(const Mesh& mesh);
  void clear() { *this = StatusWord(); }

 private:
  StepStatus status_ = StepStatus::ok;
  int rank_ = 0;
  std::string reason_;
};

/// The word of all processes after what may fail, or raise something, on one of them alone. What it
/// throws here is an error with this reason, and thrown on after the exchange. Collective.
StatusWord exchanged(const Mesh& mesh, const std::string& reason,
                     const std::function<void(StatusWord&)>& local);

}  // namespace tessera
