#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/cluster/membership/generation.hpp>
#include <tessera/framework/comm/internal/elastic_run.hpp>
#include <tessera/framework/comm/internal/status.hpp>
#include <tessera/framework/training/callbacks/callback.hpp>
#include <tessera/framework/training/internal/run_fingerprint.hpp>
#include <tessera/framework/training/internal/step_executor.hpp>

namespace tessera::detail {

/// Snapshots of a fit's state in the memory of its processes: weights, slots, metrics, counters,
/// position, states of callbacks.
class FitSnapshots {
 public:
  virtual ~FitSnapshots() = default;
  /// Takes a snapshot of the present state; copies of what only one process holds go to its
  /// neighbour in the background. Keeps the snapshot before this one, which every process then has
  /// whole. Collective.
  virtual void take() = 0;
  /// Waits for the copies of the last snapshot. Throws CommError.
  virtual void finish_copies() = 0;
  /// Gives up copies that have not arrived, since their connections have ended.
  virtual void settle() noexcept = 0;
  /// Describes the snapshots that this process keeps parts of.
  virtual Json kept() const = 0;
  /// Chooses the newest snapshot that is whole in what the processes keep, by rank; returns whether
  /// there is one. Drops all others. Collective.
  virtual bool choose(const std::vector<Json>& kept) = 0;
  /// Restores the chosen snapshot on the model's present mesh. Collective.
  virtual void restore() = 0;
};

/// Makes the snapshots of a fit of `model`, with the states of these callbacks.
using FitSnapshotsMaker = std::function<std::unique_ptr<FitSnapshots>(
    Trainer& trainer, const std::vector<Callback*>& callbacks)>;

/// How fit makes its snapshots; framework/io, which can read and write a model's state, sets it.
FitSnapshotsMaker& fit_snapshots();

/// The part of a fit that goes on when processes of an elastic run come and go.
class ElasticFit {
 public:
  /// Returns null unless this process belongs to an elastic run and runs the steps itself. `facts`
  /// must be equal on all processes.
  static std::unique_ptr<ElasticFit> make(const FitRun& run, RunFingerprint facts);
  ~ElasticFit();
  ElasticFit(const ElasticFit&) = delete;
  ElasticFit& operator=(const ElasticFit&) = delete;

  /// Meets the members of the newest generation, if it is another one than the present, and moves
  /// the model to the devices that this process then hosts. Throws CommError if meanwhile others
  /// are to meet. A fit after the first has values that only a snapshot can pass on, so it begins
  /// in the present generation unless a member of it is lost.
  void meet();
  /// Returns whether the others have completed this fit before this process joined them; the
  /// progress then has their history. Waits for processes that have not begun the fit. Collective.
  bool is_complete();
  /// Begins or resumes the fit with the others: calls `begin` if this process has not begun, else
  /// tells the callbacks of the change; restores the newest snapshot. Collective. Throws StateError
  /// if there is none and nothing on disk.
  void start(const std::function<void()>& begin);
  /// Waits until all have ended the fit, and keeps its history for those that join in a later one.
  /// Collective.
  void end();
  /// Waits for the next generation after an error. Rethrows what is not the loss of a process; see
  /// ElasticRun::wait_for_next().
  void recover(const CommError& error);
  /// Whether this process has left the others, which go on.
  bool has_left() const { return has_left_; }

  /// Raises the status if the members of another generation are to meet, or a signal asks to leave.
  void raise_change(StepStatus& own);
  /// Takes a snapshot between two steps, leaves the generation and throws MembershipChanged.
  /// Collective.
  [[noreturn]] void regroup();
  /// Takes a snapshot if it is time to. Called between two training steps. Collective.
  void between_steps();

 private:
  ElasticFit(const FitRun& run, ElasticRun& elastic, RunFingerprint facts);
  bool agree();
  void restore(bool whole, bool read_from_disk);
  void tell(bool whole, int64_t done) const;
  void interrupt();
  void check_size();
  void save_alone();
  void keep_history(const Json& history) const;
  void say(const std::string& line) const;

  const FitRun run_;
  TrainingState& state_;
  ElasticRun& elastic_;
  const uint64_t number_;  ///< the fit's in this process, from 1
  const RunFingerprint facts_;
  const std::unique_ptr<FitSnapshots> snapshots_;
  std::optional<Membership> next_;  ///< to be met
  std::string lost_;                ///< who is gone, and why
  bool begun_ = false;              ///< whether callbacks were told of the begin
  bool stepped_ = false;            ///< whether this process has begun a step of the fit
  bool any_stepped_ = false;        ///< whether any process has
  bool kept_all_ = true;            ///< whether no value was dropped
  bool has_left_ = false;
  int64_t since_ = -1;  ///< steps since the last snapshot; -1: none in this generation
};

}  // namespace tessera::detail
