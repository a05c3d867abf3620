#include <tessera/framework/training/internal/elastic_fit.hpp>

#include <algorithm>
#include <iostream>
#include <utility>

#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/training/internal/local_steps.hpp>
#include <tessera/framework/training/internal/rehost.hpp>

namespace tessera::detail {
namespace {

constexpr const char* snapshots_key = "elastic: snapshots";

/// Returns who of `own` is gone in `next`, with the reasons; empty if nobody was lost.
std::string lost_text(const Membership& own, const Membership& next) {
  std::string lost;
  for (const Departure& each : next.departures) {
    if (each.reason.empty() || own.rank_of(each.member.id) < 0) continue;
    lost += str(lost.empty() ? "" : "; ", one_line(each.member.describe()), ": ",
                one_line(each.reason, 300));
  }
  return lost;
}

}  // namespace

FitSnapshotsMaker& fit_snapshots() {
  static FitSnapshotsMaker maker;
  return maker;
}

std::unique_ptr<ElasticFit> ElasticFit::make(const FitRun& run, RunFingerprint facts) {
  ElasticRun* const elastic = ElasticRun::current();
  const bool own_steps = dynamic_cast<LocalSteps*>(run.state.executor.get()) != nullptr;
  if (!elastic || !own_steps || !fit_snapshots()) return nullptr;
  return std::unique_ptr<ElasticFit>(new ElasticFit(run, *elastic, std::move(facts)));
}

ElasticFit::ElasticFit(const FitRun& run, ElasticRun& elastic, RunFingerprint facts)
    : run_(run),
      state_(run.state),
      elastic_(elastic),
      facts_(std::move(facts)),
      snapshots_(fit_snapshots()(run.trainer, run.callbacks.all())) {
  state_.elastic = this;
  elastic_.begin_fit();
}

ElasticFit::~ElasticFit() {
  state_.elastic = nullptr;
  // From here on a loss ends the run, as that of any run.
  elastic_.end_fit();
}

void ElasticFit::meet() {
  if (!next_ && elastic_.is_outdated()) {
    next_ = elastic_.wait_for_next(CommError("elastic", "processes meet", "nobody", ""));
  }
  if (!next_) return;
  lost_ = lost_text(elastic_.membership(), *next_);
  elastic_.enter(*std::exchange(next_, std::nullopt));
  reconnect_elastic();
  const Mesh mesh = hosted_now(state_.layouts.mesh());
  // After a step, values are those of any moment of it: only a snapshot's count.
  if (!rehost(run_.trainer, state_, mesh, /*keep=*/!stepped_)) kept_all_ = false;
  since_ = -1;
}

bool ElasticFit::agree() {
  const Json own = {{"stepped", stepped_}, {"kept", kept_all_}, {"snapshots", snapshots_->kept()}};
  std::vector<Json> kept;
  any_stepped_ = false;
  bool all_kept = true;
  for (const std::string& text :
       communicator_of(state_.layouts.mesh()).gather(snapshots_key, to_json_text(own, -1))) {
    const Json other = parse_json(text, snapshots_key);
    any_stepped_ = any_stepped_ || other.at("stepped").get<bool>();
    all_kept = all_kept && other.at("kept").get<bool>();
    kept.push_back(other.at("snapshots"));
  }
  // Values that nobody has any more are as good as steps.
  any_stepped_ = any_stepped_ || !all_kept;
  return snapshots_->choose(kept);
}

void ElasticFit::start(const std::function<void()>& begin) {
  const Mesh& mesh = state_.layouts.mesh();
  const int64_t done = state_.steps();
  check_same_on_all_ranks(mesh, "fit", facts_);
  const bool whole = agree();
  run_.callbacks.set_params(is_first_rank(mesh), whole);
  const FitPosition first = {
      .epoch = run_.options.initial_epoch, .pass = run_.options.initial_epoch, .batch = 0};
  if (!std::exchange(begun_, true)) {
    begin();
  } else {
    // A callback that restores from disk sets another position.
    if (any_stepped_ && !whole)
      state_.progress = {.position = first, .history = {}, .epoch_logs = {}};
    const Callback::MembershipChange change{.processes = communicator_of(mesh).size(),
                                            .reason = lost_};
    state_.exchange.do_on_all_ranks([&] { run_.callbacks.membership_change(change); });
  }
  const FitPosition& now = state_.progress.position;
  restore(whole, now.epoch != first.epoch || now.step > 0);
  tell(whole, done);
  check_size();
}

void ElasticFit::restore(bool whole, bool read_from_disk) {
  if (whole) {
    state_.exchange.set_stop(false);
    snapshots_->restore();
  } else if (any_stepped_ && !read_from_disk) {
    throw StateError(
        "elastic",
        "the processes that are left, and neighbours of those that are gone, have the state of "
        "training, or a checkpoint has it",
        lost_.empty() ? "neither" : lost_,
        "start the run again; add BackupAndRestore (--checkpoint-dir with --resume)");
  }
}

/// Tells how training goes on after a change. `done`: the steps that this process had done.
void ElasticFit::tell(bool whole, int64_t done) const {
  if (elastic_.generation() <= 1 || !any_stepped_) return;
  const FitPosition& at = state_.progress.position;
  std::string line =
      str("[elastic] generation ", elastic_.generation(), ", ",
          communicator_of(state_.layouts.mesh()).size(), " processes",
          lost_.empty() ? "" : " after the loss of " + lost_, ": going on at epoch ", at.epoch + 1,
          ", step ", at.step + 1, whole ? "" : ", from a checkpoint on disk");
  // A newcomer has done none.
  const int64_t again = done - state_.steps();
  if (stepped_ && again > 0) {
    line += str("; ", again, again == 1 ? " step is" : " steps are", " done again");
  }
  say(line);
}

/// Lets callbacks save what was restored. No epoch has begun that would go on with the metrics.
void ElasticFit::interrupt() {
  state_.metrics.begin_epoch(state_.progress.position.step);
  run_.callbacks.interrupt();
}

/// Saves and ends the fit with fewer processes than it asks for.
void ElasticFit::check_size() {
  const int size = communicator_of(state_.layouts.mesh()).size();
  if (size >= run_.options.elastic.min_processes) return;
  state_.exchange.do_on_all_ranks([this] { interrupt(); });
  throw StateError("fit",
                   str("at least ", run_.options.elastic.min_processes,
                       " processes train (elastic.min_processes)"),
                   str(size, lost_.empty() ? "" : "; lost: " + lost_),
                   "start more processes, or allow fewer");
}

void ElasticFit::end() { communicator_of(state_.layouts.mesh()).gather("elastic: end of fit", ""); }

void ElasticFit::recover(const CommError& error) {
  snapshots_->settle();
  try {
    next_ = elastic_.wait_for_next(error);
  } catch (const Interrupted&) {
    has_left_ = true;
    throw;
  } catch (const CommError&) {
    if (elastic_.is_first_of_failed()) save_alone();
    throw;
  }
}

/// Lets callbacks save the newest snapshot, if this process has all of it.
void ElasticFit::save_alone() {
  const Mesh& mesh = state_.layouts.mesh();
  const bool on_cpus = mesh.local_devices().front().type == Device::Type::cpu;
  const auto devices = static_cast<size_t>(mesh.size());
  rehost(run_.trainer, state_,
         create_mesh(mesh.dims(),
                     on_cpus ? virtual_cpus(mesh.size())
                             : std::vector<Device>(devices, mesh.local_devices().front()),
                     mesh.name()),
         /*keep=*/false);
  if (!snapshots_->choose({snapshots_->kept()})) return;
  run_.callbacks.set_params(/*is_first_rank=*/true, /*restored_from_memory=*/true);
  run_.callbacks.membership_change({});
  snapshots_->restore();
  interrupt();
}

void ElasticFit::raise_change(StepStatus& own) {
  if (const int signal = stop_signal()) {
    elastic_.leave();
    // Too few are left without this process: all save.
    if (elastic_.is_broken()) own.raise(StatusLevel::save, std::to_string(signal));
  }
  if (elastic_.is_outdated()) own.raise(StatusLevel::regroup, "");
}

void ElasticFit::regroup() {
  snapshots_->take();
  snapshots_->finish_copies();
  auto& communicator = communicator_of(state_.layouts.mesh());
  if (auto* const processes = dynamic_cast<ProcessCommunicator*>(&communicator)) {
    processes->part();
  }
  throw MembershipChanged("elastic", "the members of a generation stay", "others are to meet", "");
}

void ElasticFit::between_steps() {
  if (since_ < 0 || since_ >= run_.options.elastic.snapshot_every) {
    snapshots_->take();
    since_ = 0;
  }
  ++since_;
  stepped_ = true;
}

void ElasticFit::say(const std::string& line) const {
  if (is_first_rank(state_.layouts.mesh())) std::cerr << line + "\n" << std::flush;
}

}  // namespace tessera::detail
